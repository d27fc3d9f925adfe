/**
 * Takes secrets out of foreign text before anybody reads it: the values of secret variables that the child was given, and
 * what looks like a key.
 */
import { isSecretVariable } from '../../../shared/secret-variables.ts';

const looksSecret: readonly RegExp[] = [
  /(?<![\w-])(?:sk|rk|pk)[-_](?=[\w-]*\d)[\w-]{12,}/g,
  /(?<![\w-])(?:gh[opsur]_|github_pat_|glpat-|xox[abeprs]-|npm_|hf_|AKIA|ASIA|AIza)[\w-]{12,}/g,
  /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*/g,
  /(?<=\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}/gi,
  /(?<=:\/\/[^\s/@:]*:)[^\s/@]+(?=@)/g,
  /(?<=\b(?:api[-_]?key|password|passwd|secret|token)["']?\s*[=:]\s*["']?)[^\s"',;]{6,}/gi,
];
const mark = '[redacted]';
/** Shorter values would take harmless words out. */
const minSecretChars = 6;

export class SecretFilter {
  readonly #secrets: readonly string[];

  /** `environment` is what the child was started with. */
  constructor(environment: Readonly<Record<string, string>>) {
    const secrets = Object.entries(environment).filter(([name, value]) => value.length >= minSecretChars && isSecretVariable(name, value));
    // The longest first: one secret may be the beginning of another.
    this.#secrets = secrets.map(([, value]) => value).sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    let out = text;
    for (const secret of this.#secrets) out = out.replaceAll(secret, mark);
    for (const pattern of looksSecret) out = out.replace(pattern, mark);
    return out;
  }
}
