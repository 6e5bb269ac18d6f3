#ifndef IMPRINT_HTTP_H
#define IMPRINT_HTTP_H

#include <stddef.h>

/// One HTTP request and its response.
typedef struct imprint_http imprint_http;

/// The settings of a request; all pointers need to be valid only during `imprint_http_create`.
typedef struct {
    const char *url;
    /// Header lines such as "Accept: text/plain".
    const char *const *headers;
    size_t header_count;
    /// Whether to send a POST request with the body instead of a GET request.
    int has_body;
    const void *body;
    size_t body_size;
    /// A PEM file of the only trusted certificate authorities; NULL for those of the operating system.
    const char *certificates;
} imprint_http_request;

/// The functions that receive the response. A result of 0 ends the request.
typedef struct {
    void *context;
    /// Receives a line of the header, of an informational response or of the trailers, with its line break, and the status.
    int (*on_header)(void *context, const char *line, size_t size, long status);
    /// Receives a part of the body.
    int (*on_data)(void *context, const char *data, size_t size);
} imprint_http_receiver;

/// The reasons for the end of a request.
typedef enum {
    IMPRINT_HTTP_OK,
    /// An option is invalid, the connection failed, there is not enough memory, or a callback ended the request.
    IMPRINT_HTTP_FAILED,
    /// The response violates HTTP.
    IMPRINT_HTTP_INVALID_RESPONSE,
    /// The certificate of the server is not trusted, or the file of certificate authorities cannot be used.
    IMPRINT_HTTP_UNTRUSTED,
    /// The address of the proxy is unknown.
    IMPRINT_HTTP_NO_PROXY,
} imprint_http_result;

/// Initializes libcurl; call it once, before any other function. Returns whether it succeeds.
int imprint_http_initialize(void);

/// Prepares a request; returns NULL if there is no memory.
imprint_http *imprint_http_create(const imprint_http_request *request, imprint_http_receiver receiver);

/// Sends and receives all available bytes, then waits for the connection, `imprint_http_wake` or at most `milliseconds`.
///
/// Returns 0 at the end of the request.
int imprint_http_step(imprint_http *http, int milliseconds);

/// Ends the waiting of `imprint_http_step`; may be called on any thread.
void imprint_http_wake(imprint_http *http);

/// Returns the reason for the end of the request, and its description, which is valid until `imprint_http_destroy`.
imprint_http_result imprint_http_get_result(const imprint_http *http, const char **description);

/// Closes the connection and releases the request.
void imprint_http_destroy(imprint_http *http);

#endif
