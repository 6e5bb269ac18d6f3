#ifndef DYNAMIC_LIBRARY_H
#define DYNAMIC_LIBRARY_H

/// A function of a library, and the function pointer that receives its address.
typedef struct {
    void *pointer;
    const char *name;
} imprint_symbol;

/// Loads a library and finds its functions, also those of the libraries that it depends on. Returns whether all are found.
///
/// - names: the file names to try in this order, ended by NULL.
/// - symbols: the functions, ended by one whose name is NULL.
int imprint_load_library(const char *const *names, const imprint_symbol *symbols);

#endif
