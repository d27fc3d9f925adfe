/**
 * The frame of a page. Its policy lets nothing in from elsewhere and runs no script but ours: whatever text of an agent might slip
 * through, it stays text.
 */
import { createHash } from 'node:crypto';
import { type Html, html, trusted } from './html.ts';

export interface PageShell {
  readonly title: string;
  /** A style sheet of the page's own; or the name of the file beside it that has one for all. */
  readonly style: { readonly text: string } | { readonly file: string };
  readonly script?: string;
}

/** Everything before the page's content. */
export function pageHead({ title, style, script }: PageShell): Html {
  const scripts = script === undefined ? "'none'" : `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
  const policy = `default-src 'none'; style-src ${'file' in style ? "'self'" : "'unsafe-inline'"}; script-src ${scripts}; img-src data:; base-uri 'none'; form-action 'none'`;
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trusted(policy)}">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
${'file' in style ? html`<link rel="stylesheet" href="${style.file}">` : html`<style>${trusted(style.text)}</style>`}</head>
<body><main>
`;
}

/** Everything behind it. */
export function pageFoot({ script }: PageShell): Html {
  return html`</main>${script === undefined ? undefined : html`<script>${trusted(script)}</script>`}</body></html>
`;
}
