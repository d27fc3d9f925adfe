export const needle = 1;
