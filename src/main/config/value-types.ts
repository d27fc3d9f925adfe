/** Short names for the types that many rows of the table of settings have. */

const week = 7 * 24 * 3600 * 1000;

/** At most a week. */
export const milliseconds = (min = 0, max = week) => ({ kind: 'integer', min, max }) as const;
export const count = (min: number, max: number) => ({ kind: 'integer', min, max }) as const;
/** A decimal number from 0. */
export const amount = (max: number) => ({ kind: 'decimal', min: 0, max }) as const;
export const line = (maxLength: number) => ({ kind: 'text', maxLength }) as const;
