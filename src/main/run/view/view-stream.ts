/** Where a view writes. A reader that goes away (`dsh-acp run | head`) ends the view, never the run. */

export type ViewStream = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

/** A writer of texts that does nothing more once the stream has failed. */
export function writerTo(stream: ViewStream): (text: string) => void {
  let broken = false;
  stream.on('error', () => {
    broken = true;
  });
  return (text) => {
    if (!broken) stream.write(text);
  };
}
