#include <stddef.h>
typedef struct file FILE;
extern FILE *__stderrp;
#define stderr __stderrp
int fprintf(FILE *stream, const char *format, ...);
int snprintf(char *text, size_t size, const char *format, ...);
