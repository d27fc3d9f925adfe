/**
 * Guesses tokens from characters: four to a token, until a provider's own counts say better. An image counts the same whatever
 * its size: providers scale large ones down to about this.
 */

/** Below this a count says more about the request's frame than about its text. */
const fewestChars = 400;
const fewestTokensPerChar = 0.1;
const mostTokensPerChar = 2;
export const tokensPerImage = 1600;

export class TokenEstimator {
  #tokensPerChar = 0.25;

  tokens(chars: number, images = 0): number {
    return Math.ceil(chars * this.#tokensPerChar) + images * tokensPerImage;
  }

  /** Takes over the ratio that a provider reported for a request of `chars` and `images`. Implausible ratios are clamped. */
  calibrate(chars: number, reportedTokens: number, images = 0): void {
    if (chars < fewestChars || !(reportedTokens > 0)) return;
    const ofText = reportedTokens - images * tokensPerImage;
    // What images cost is a guess, and where it is most of the request the rest says nothing about the text.
    if (ofText < reportedTokens / 2) return;
    this.#tokensPerChar = Math.min(mostTokensPerChar, Math.max(fewestTokensPerChar, ofText / chars));
  }
}
