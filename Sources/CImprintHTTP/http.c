#include "imprint_http.h"

#ifdef __linux__

#include <curl/curl.h>
#include <stdlib.h>

// The code for a header that exceeds a limit since libcurl 8.6. The headers of the build may be older than the library.
enum { too_large_version = 0x080600 };
#if LIBCURL_VERSION_NUM < 0x080600
#define CURLE_TOO_LARGE ((CURLcode)100)
#endif

struct imprint_http {
    CURL *request;
    CURLM *multi;
    struct curl_slist *headers;
    imprint_http_receiver receiver;
    CURLcode code;
    CURLMcode multi_code;
    int has_started;
    char error[CURL_ERROR_SIZE];
};

int imprint_http_initialize(void) { return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK; }

static size_t receive_header(char *line, size_t size, size_t count, void *context) {
    imprint_http *http = context;
    long status = 0;
    curl_easy_getinfo(http->request, CURLINFO_RESPONSE_CODE, &status);
    return http->receiver.on_header(http->receiver.context, line, size * count, status) ? size * count : 0;
}

static size_t receive_data(char *data, size_t size, size_t count, void *context) {
    imprint_http *http = context;
    // 0 as the result for an empty part would be a success.
    if (size * count == 0) return 0;
    return http->receiver.on_data(http->receiver.context, data, size * count) ? size * count : 0;
}

static int add_header(imprint_http *http, const char *line) {
    struct curl_slist *list = curl_slist_append(http->headers, line);
    if (!list) return 0;
    http->headers = list;
    return 1;
}

/// Allows only HTTP and HTTPS, 1.1 and TLS 1.2 or later; libcurl follows no redirects, and reads neither cookies nor .netrc, unless asked.
static CURLcode set_protocol(CURL *request) {
    CURLcode code;
#if LIBCURL_VERSION_NUM >= 0x075500
    code = curl_easy_setopt(request, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    code = curl_easy_setopt(request, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_FOLLOWLOCATION, 0L);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    // The header of a proxy is not part of the response.
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    // Without signals, name resolution cannot disturb other threads. The thread of the request must block SIGPIPE.
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_NOSIGNAL, 1L);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_BUFFERSIZE, 256L << 10);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_USERAGENT, "Imprint");
    return code;
}

static CURLcode set_request(imprint_http *http, const imprint_http_request *settings) {
    CURL *request = http->request;
    CURLcode code = curl_easy_setopt(request, CURLOPT_URL, settings->url);
    for (size_t i = 0; i < settings->header_count; i++) {
        if (!add_header(http, settings->headers[i])) return CURLE_OUT_OF_MEMORY;
    }
    if (code == CURLE_OK && settings->has_body) {
        // Without this line, a request with a large body waits for the status 100.
        if (!add_header(http, "Expect:")) return CURLE_OUT_OF_MEMORY;
        code = curl_easy_setopt(request, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)settings->body_size);
        if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_COPYPOSTFIELDS, settings->body_size ? settings->body : "");
    }
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_HTTPHEADER, http->headers);
    if (code == CURLE_OK && settings->certificates) {
        code = curl_easy_setopt(request, CURLOPT_CAINFO, settings->certificates);
        if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_CAPATH, NULL);
    }
    return code;
}

static CURLcode set_receiver(imprint_http *http) {
    CURL *request = http->request;
    CURLcode code = curl_easy_setopt(request, CURLOPT_ERRORBUFFER, http->error);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_HEADERFUNCTION, receive_header);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_HEADERDATA, http);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_WRITEFUNCTION, receive_data);
    if (code == CURLE_OK) code = curl_easy_setopt(request, CURLOPT_WRITEDATA, http);
    return code;
}

imprint_http *imprint_http_create(const imprint_http_request *request, imprint_http_receiver receiver) {
    imprint_http *http = calloc(1, sizeof *http);
    if (!http) return NULL;
    http->receiver = receiver;
    http->request = curl_easy_init();
    http->multi = curl_multi_init();
    if (!http->request || !http->multi) {
        imprint_http_destroy(http);
        return NULL;
    }
    http->code = set_receiver(http);
    if (http->code == CURLE_OK) http->code = set_protocol(http->request);
    if (http->code == CURLE_OK) http->code = set_request(http, request);
    if (http->code == CURLE_OUT_OF_MEMORY) {
        imprint_http_destroy(http);
        return NULL;
    }
    if (http->code == CURLE_OK) http->multi_code = curl_multi_add_handle(http->multi, http->request);
    return http;
}

int imprint_http_step(imprint_http *http, int milliseconds) {
    int running = 0, left;
    CURLMsg *message;
    if (http->code != CURLE_OK || http->multi_code != CURLM_OK) return 0;
    http->has_started = 1;
    http->multi_code = curl_multi_perform(http->multi, &running);
    if (http->multi_code == CURLM_OK && running) {
        http->multi_code = curl_multi_poll(http->multi, NULL, 0, milliseconds, NULL);
        return http->multi_code == CURLM_OK;
    }
    while ((message = curl_multi_info_read(http->multi, &left))) {
        if (message->msg == CURLMSG_DONE) http->code = message->data.result;
    }
    return 0;
}

void imprint_http_wake(imprint_http *http) { curl_multi_wakeup(http->multi); }

/// Whether an error of memory may be that of a header that exceeds a limit. Before version 8.6, libcurl has one code for both.
static int may_be_too_large(const imprint_http *http) {
    curl_off_t first_byte_time = 0;
    if (curl_version_info(CURLVERSION_NOW)->version_num >= too_large_version) return 0;
    curl_easy_getinfo(http->request, CURLINFO_STARTTRANSFER_TIME_T, &first_byte_time);
    return first_byte_time > 0;
}

imprint_http_result imprint_http_get_result(const imprint_http *http, const char **description) {
    *description = "";
    if (http->multi_code != CURLM_OK) {
        *description = curl_multi_strerror(http->multi_code);
        return IMPRINT_HTTP_FAILED;
    }
    if (http->code == CURLE_OK) return IMPRINT_HTTP_OK;
    // The detailed messages about URLs and proxies may contain a password.
    int is_secret = http->code == CURLE_URL_MALFORMAT || http->code == CURLE_COULDNT_RESOLVE_PROXY;
    *description = http->error[0] && !is_secret ? http->error : curl_easy_strerror(http->code);
    // The error of an option is not one of the response.
    if (!http->has_started) return IMPRINT_HTTP_FAILED;
    switch (http->code) {
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
        return IMPRINT_HTTP_INVALID_RESPONSE;
    case CURLE_BAD_FUNCTION_ARGUMENT:
        // Older versions return it for a trailer without a colon, and for a header that starts with a space.
        *description = "a line of its header or of its trailers is malformed";
        return IMPRINT_HTTP_INVALID_RESPONSE;
    case CURLE_OUT_OF_MEMORY:
        if (!may_be_too_large(http)) {
            *description = "there is not enough memory";
            return IMPRINT_HTTP_FAILED;
        }
        // Fall through.
    case CURLE_TOO_LARGE:
        *description = "its header or its trailers are too large";
        return IMPRINT_HTTP_INVALID_RESPONSE;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return IMPRINT_HTTP_UNTRUSTED;
    case CURLE_COULDNT_RESOLVE_PROXY:
        return IMPRINT_HTTP_NO_PROXY;
    default:
        // An invalid chunk has the same code as a broken connection, CURLE_RECV_ERROR.
        return IMPRINT_HTTP_FAILED;
    }
}

void imprint_http_destroy(imprint_http *http) {
    if (!http) return;
    if (http->multi && http->request) curl_multi_remove_handle(http->multi, http->request);
    if (http->request) curl_easy_cleanup(http->request);
    if (http->multi) curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->headers);
    free(http);
}

#endif
