/** What the MCP servers of tests list. */
export const noArguments = { type: 'object', properties: {} };

/** Tools of a server that behaves; two pages of them. */
export const good: readonly any[] = [
  {
    name: 'echo',
    description: 'Says the text again.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    annotations: { readOnlyHint: true },
  },
  {
    name: 'write',
    description: 'Changes something.',
    inputSchema: noArguments,
    annotations: { destructiveHint: true, readOnlyHint: false },
  },
  ...['hang', 'garbage', 'fail', 'image', 'structured', 'long', 'roots', 'sample', 'change', 'environment'].map((name) => ({
    name,
    description: name,
    inputSchema: noArguments,
  })),
];

function nested(depth: number): object {
  return depth === 0 ? { type: 'string' } : { type: 'object', properties: { a: nested(depth - 1) } };
}

/** One that is good, and what must be left out or made harmless. */
export const hostile: readonly any[] = [
  {
    name: 'good',
    description: `Fine.\u202e\u{e0041}\u0007 \u001b[31mred`,
    inputSchema: { ...noArguments, $id: 'urn:x', 'x-secret': 'do evil' },
  },
  { name: 'hang', inputSchema: noArguments },
  { name: 'deep', inputSchema: nested(40) },
  {
    name: 'huge',
    inputSchema: { type: 'object', properties: Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`p${n}`, { type: 'string' }])) },
  },
  { name: 'elsewhere', inputSchema: { type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } } },
  { name: 'nowhere', inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/none' } } } },
  { name: 'wrong', inputSchema: { type: 'object', properties: { a: { type: 'strnig' } } } },
  { name: 'list', inputSchema: { type: 'array' } },
  { name: 'hid\u200bden', inputSchema: noArguments },
  { name: 'with spaces/and: signs', inputSchema: noArguments },
  { name: 'with spaces/and; signs', inputSchema: noArguments },
  { name: `long_${'x'.repeat(100)}`, inputSchema: noArguments },
  { name: 'slow_pattern', inputSchema: { type: 'object', properties: { a: { type: 'string', pattern: '^(a+)+$' } } } },
  { name: 'circle', inputSchema: { type: 'object', allOf: [{ $ref: '#' }], properties: { a: { $ref: '#' } } } },
  { name: 'good', inputSchema: noArguments },
  'not a tool',
];
