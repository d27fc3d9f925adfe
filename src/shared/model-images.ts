/**
 * Whether a model takes images. Main asks it for what it advertises, the session thread for what it sends: both must agree.
 */
import type { ModelConfig } from './config.ts';

/** Families that are known to look at pictures, whoever serves them; a prefix like `openai/` may stand before the name. */
const known = [
  /(?:^|\/)(?:gpt-4o|gpt-4\.1|gpt-5|claude-|gemini-)/i,
  /(?:^|[-_/:.])(?:vision|vl|llava|pixtral)(?:$|[-_/:.\d])/i,
  /(?:^|\/)qwen[\d.]*-?vl/i,
];
/** Members of these families that hear, speak or make pictures instead. */
const others = /audio|realtime|transcribe|tts|embed|image/i;

/** The built-in models never do: one follows a script, the other plays what was recorded. */
export function takesImages(model: ModelConfig): boolean {
  if (model.kind !== 'openai-compatible') return false;
  return model.images === undefined ? isKnown(model.model) : model.images === 'on';
}

/** Each request of a model asks. */
let asked: { readonly name: string; readonly answer: boolean } | undefined;

function isKnown(name: string): boolean {
  if (asked?.name !== name) asked = { name, answer: known.some((pattern) => pattern.test(name)) && !others.test(name) };
  return asked.answer;
}
