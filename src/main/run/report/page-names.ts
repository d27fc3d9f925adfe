/**
 * Where a report's pages lie: `report.html` has its job pages in `report/transcripts/`. File names are safe on every system and
 * differ for different keys, also where case does not count.
 */
import { createHash } from 'node:crypto';
import { basename, dirname, extname, join } from 'node:path';

const longestStem = 80;

/** Absolute directory of the job pages that belong to the report at `reportPath`. */
export function transcriptsDir(reportPath: string): string {
  return join(dirname(reportPath), folderName(reportPath), 'transcripts');
}

/** The style sheet of all job pages, beside them. */
export const transcriptStyleName = 'style.css';

/** From the report's own directory, for a link. */
export function transcriptLink(reportPath: string, key: string): string {
  return `${encodeURIComponent(folderName(reportPath))}/transcripts/${transcriptName(key)}`;
}

/** From a job page back to its report. */
export function reportLink(reportPath: string): string {
  return `../../${encodeURIComponent(basename(reportPath))}`;
}

/** A readable part of the key, and a hash that tells it from others. */
export function transcriptName(key: string): string {
  const stem = key
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replaceAll(/^[.-]+|[.-]+$/g, '')
    .slice(0, longestStem);
  const hash = createHash('sha256').update(key).digest('hex').slice(0, 10);
  return `${stem === '' ? 'job' : stem}-${hash}.html`;
}

function folderName(reportPath: string): string {
  const stem = basename(reportPath, extname(reportPath));
  // A report without an extension would take the folder's name itself.
  return stem === basename(reportPath) ? `${stem}-pages` : stem;
}
