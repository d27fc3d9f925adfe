/** What one row of the table of settings says. The rows themselves stand in `schema.ts`. */

export type ValueType =
  | { readonly kind: 'text'; readonly maxLength: number }
  | { readonly kind: 'word'; readonly pattern: RegExp; readonly says: string }
  | { readonly kind: 'url' }
  /** Each once; kept as one text with commas between them. */
  | { readonly kind: 'names'; readonly most: number }
  | { readonly kind: 'path' }
  | { readonly kind: 'choice'; readonly values: readonly string[] }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'decimal'; readonly min: number; readonly max: number };

export type Section = '' | 'provider' | 'threads' | 'limits' | 'budget' | 'permissions' | 'mcp' | 'telemetry';

export interface KeySpec {
  /** `''` is the top of the file. */
  readonly section: Section;
  readonly type: ValueType;
  /** `undefined` when the default depends on other keys, or when the key has none: then `defaultText` says which. */
  readonly default: string | number | undefined;
  readonly defaultText?: string;
  readonly doc: string;
  /** Another spelling that the file may use. */
  readonly alias?: string;
  /** Never printed; has no flag, since other users can see a command line. */
  readonly secret?: true;
}
