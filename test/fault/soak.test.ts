/** A few seconds of the soak: everything is answered and every log is whole. What must stay flat is judged by `npm run soak`. */
import { existsSync } from 'node:fs';
import t from 'tap';
import { soak } from '../support/soak.ts';

t.setTimeout(110_000);

t.test(
  'a short soak leaves nothing unanswered, unread or running',
  { skip: existsSync('/proc/self/task') ? false : 'needs /proc' },
  async (t) => {
    const { complaints, counts } = await soak({ seconds: 4, sessions: 16, seed: 5, judged: false, say: (line) => t.comment(line) });
    t.same(complaints, []);
    for (const kind of ['threads killed', 'children killed', 'model restarts', 'stalls', 'slow readers'])
      t.ok((counts[kind] ?? 0) > 0, kind);
  },
);
