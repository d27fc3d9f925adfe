/** Breaks a sentence into lines, each with the same margin. */
export function wrapText(text: string, margin: number, width: number): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width - margin) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map((each) => ' '.repeat(margin) + each).join('\n');
}
