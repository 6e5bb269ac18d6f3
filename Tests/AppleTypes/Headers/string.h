#include <stddef.h>
void *memcpy(void *target, const void *source, size_t count);
void *memset(void *target, int value, size_t count);
int strcmp(const char *a, const char *b);
size_t strlen(const char *text);
char *strncpy(char *target, const char *source, size_t count);
