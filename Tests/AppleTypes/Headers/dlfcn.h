#define RTLD_NOW 2
#define RTLD_LOCAL 4
void *dlopen(const char *path, int mode);
void *dlsym(void *handle, const char *name);
