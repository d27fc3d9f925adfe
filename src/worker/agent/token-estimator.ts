/**
 * Guesses tokens from characters: four to a token, until a provider's own counts say better.
 */

/** Below this a count says more about the request's frame than about its text. */
const fewestChars = 400;
const fewestTokensPerChar = 0.1;
const mostTokensPerChar = 2;

export class TokenEstimator {
  #tokensPerChar = 0.25;

  tokens(chars: number): number {
    return Math.ceil(chars * this.#tokensPerChar);
  }

  /** Takes over the ratio that a provider reported for a request of `chars`. Implausible ratios are clamped. */
  calibrate(chars: number, reportedTokens: number): void {
    if (chars < fewestChars || !(reportedTokens > 0)) return;
    this.#tokensPerChar = Math.min(mostTokensPerChar, Math.max(fewestTokensPerChar, reportedTokens / chars));
  }
}
