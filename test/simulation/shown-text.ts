/**
 * What the client was shown of each prompt's text, held against what the script of the prompt says: the whole of it, in order.
 * Text of an attempt of the model that failed is shown and then taken back by a notice.
 */
const notice = '[scripted demo model: it follows written commands and understands no language]\n';

/** All that a script says; what the model adds when it is done is no part of it. */
export function textOfScript(script: string): string {
  let text = '';
  for (const line of script.split('\n')) {
    const [command, ...words] = line.split(' ');
    if (command === 'say') text += `${words.join(' ')}\n`;
    else if (command === 'repeat') text += `${words.slice(1).join(' ')} `.repeat(Number(words[0]));
  }
  return text;
}

/** The text of a turn without what the scripted model says about itself. */
export function ofScript(text: string): string {
  return text.replaceAll(notice, '').replace(/The script is done[.;][^\n]*$/, '');
}

/** What is wrong with the text of a completed turn; undefined when nothing is. */
export function wrongText(said: string, script: string): string | undefined {
  const wanted = textOfScript(script);
  const found = ofScript(said);
  return found === wanted ? undefined : `is ${JSON.stringify(found)} and not ${JSON.stringify(wanted)}`;
}

export class ShownText {
  /** By tag: what stands, and what an attempt has added that may yet fail. */
  readonly #texts = new Map<string, { kept: string; attempt: string }>();
  /** The prompt of which each session has shown something last. */
  readonly #front = new Map<number, string>();

  /** An update of a turn that runs, in the order of arrival. */
  take(session: number, update: any): void {
    const kind: string = update.sessionUpdate;
    if (kind !== 'agent_message_chunk' && kind !== 'agent_thought_chunk' && kind !== 'tool_call') return;
    const said: string = update.content?.text ?? '';
    const [tag = this.#front.get(session)] = /\bS\d+P\d+/.exec(kind === 'tool_call' ? JSON.stringify(update) : said) ?? [];
    // What another session's prompt says here is a fault of its own.
    if (tag === undefined || !tag.startsWith(`S${session}P`)) return;
    this.#front.set(session, tag);
    const text = this.#texts.get(tag) ?? { kept: '', attempt: '' };
    this.#texts.set(tag, text);
    if (kind === 'agent_message_chunk') text.attempt += said;
    else if (said.includes('text of the failed attempt is discarded')) text.attempt = '';
    else if (kind === 'tool_call') {
      text.kept += text.attempt;
      text.attempt = '';
    }
  }

  wrongWith(tag: string, script: string): string | undefined {
    const { kept, attempt } = this.#texts.get(tag) ?? { kept: '', attempt: '' };
    return wrongText(kept + attempt, script);
  }
}
