#include <stdio.h>

/* Counts the words on stdin: runs of characters between blanks. */
int main(void) {
  int c;
  int in_word = 0;
  long words = 0;
  while ((c = getchar()) != EOF) {
    if (c == ' ') {
      in_word = 0;
    } else if (!in_word) {
      in_word = 1;
      words++;
    }
  }
  printf("%ld\n", words);
  return 0;
}
