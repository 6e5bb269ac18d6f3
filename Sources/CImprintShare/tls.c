#include "imprint_share.h"

#ifdef IMPRINT_SHARE

#include "dynamic_library.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

// OpenSSL is loaded when a server is created, so that programs do not need it otherwise. The declarations below are those of the
// stable ABI of OpenSSL 3.

typedef struct ssl_context ssl_context;
typedef struct evp_key evp_key;
typedef struct evp_context evp_context;
typedef struct x509 x509;
typedef struct x509_name x509_name;
typedef struct x509_extension x509_extension;
typedef struct x509v3_context x509v3_context;

enum {
    NO_ATEXIT = 0x80000,
    KEY_EC = 408,
    NID_SUBJECT_ALT_NAME = 85,
    NID_BASIC_CONSTRAINTS = 87,
    NID_EXTENDED_KEY_USAGE = 126,
    STRING_UTF8 = 0x1000,
    CONTROL_MODE = 33,
    CONTROL_MINIMUM_VERSION = 123,
    MODE_ENABLE_PARTIAL_WRITE = 1,
    MODE_ACCEPT_MOVING_WRITE_BUFFER = 2,
    MODE_RELEASE_BUFFERS = 16,
    VERSION_TLS_1_2 = 0x303,
    OPTION_NO_RENEGOTIATION = 1 << 30,
    ERROR_WANT_READ = 2,
    ERROR_WANT_WRITE = 3,
    ERROR_ZERO_RETURN = 6,
};

static struct {
    int (*init)(uint64_t options, const void *settings);
    const void *(*server_method)(void);
    ssl_context *(*context_new)(const void *method);
    void (*context_free)(ssl_context *context);
    long (*context_control)(ssl_context *context, int command, long value, void *pointer);
    uint64_t (*context_set_options)(ssl_context *context, uint64_t options);
    int (*context_set_cipher_list)(ssl_context *context, const char *ciphers);
    int (*context_use_certificate)(ssl_context *context, x509 *certificate);
    int (*context_use_key)(ssl_context *context, evp_key *key);
    imprint_tls_connection *(*open)(ssl_context *context);
    void (*free)(imprint_tls_connection *connection);
    int (*set_socket)(imprint_tls_connection *connection, int socket);
    int (*accept)(imprint_tls_connection *connection);
    int (*read)(imprint_tls_connection *connection, void *bytes, int count);
    int (*write)(imprint_tls_connection *connection, const void *bytes, int count);
    int (*shutdown)(imprint_tls_connection *connection);
    int (*get_error)(const imprint_tls_connection *connection, int result);
    void (*clear_errors)(void);
    unsigned long (*last_error)(void);
    void (*describe_error)(unsigned long error, char *message, size_t count);
    evp_context *(*key_context_new)(int kind, void *engine);
    void (*key_context_free)(evp_context *context);
    int (*keygen_init)(evp_context *context);
    int (*set_group_name)(evp_context *context, const char *name);
    int (*keygen)(evp_context *context, evp_key **key);
    void (*key_free)(evp_key *key);
    const void *(*sha256)(void);
    int (*random_bytes)(unsigned char *bytes, int count);
    x509 *(*certificate_new)(void);
    void (*certificate_free)(x509 *certificate);
    int (*set_version)(x509 *certificate, long version);
    void *(*serial_number)(x509 *certificate);
    int (*set_integer)(void *number, uint64_t value);
    void *(*not_before)(const x509 *certificate);
    void *(*not_after)(const x509 *certificate);
    void *(*adjust_time)(void *time, long seconds);
    int (*set_key)(x509 *certificate, evp_key *key);
    x509_name *(*subject)(const x509 *certificate);
    int (*add_entry)(
        x509_name *name, const char *field, int kind, const unsigned char *bytes, int count, int index, int set);
    int (*set_issuer)(x509 *certificate, const x509_name *name);
    x509_extension *(*make_extension)(void *configuration, x509v3_context *context, int kind, const char *value);
    int (*add_extension)(x509 *certificate, x509_extension *extension, int index);
    void (*extension_free)(x509_extension *extension);
    int (*sign)(x509 *certificate, evp_key *key, const void *digest);
    int (*digest)(const x509 *certificate, const void *kind, unsigned char *bytes, unsigned int *count);
} library;
static int is_loaded;
static pthread_once_t loading = PTHREAD_ONCE_INIT;

static void load(void) {
    static const char *const names[] = {
        "libssl.so.3", "libssl.3.dylib", "/opt/homebrew/opt/openssl@3/lib/libssl.3.dylib",
        "/usr/local/opt/openssl@3/lib/libssl.3.dylib", NULL};
    // Some functions are in libcrypto, which libssl depends on.
    const imprint_symbol symbols[] = {
        {&library.init, "OPENSSL_init_crypto"},
        {&library.server_method, "TLS_server_method"},
        {&library.context_new, "SSL_CTX_new"},
        {&library.context_free, "SSL_CTX_free"},
        {&library.context_control, "SSL_CTX_ctrl"},
        {&library.context_set_options, "SSL_CTX_set_options"},
        {&library.context_set_cipher_list, "SSL_CTX_set_cipher_list"},
        {&library.context_use_certificate, "SSL_CTX_use_certificate"},
        {&library.context_use_key, "SSL_CTX_use_PrivateKey"},
        {&library.open, "SSL_new"},
        {&library.free, "SSL_free"},
        {&library.set_socket, "SSL_set_fd"},
        {&library.accept, "SSL_accept"},
        {&library.read, "SSL_read"},
        {&library.write, "SSL_write"},
        {&library.shutdown, "SSL_shutdown"},
        {&library.get_error, "SSL_get_error"},
        {&library.clear_errors, "ERR_clear_error"},
        {&library.last_error, "ERR_peek_last_error"},
        {&library.describe_error, "ERR_error_string_n"},
        {&library.key_context_new, "EVP_PKEY_CTX_new_id"},
        {&library.key_context_free, "EVP_PKEY_CTX_free"},
        {&library.keygen_init, "EVP_PKEY_keygen_init"},
        {&library.set_group_name, "EVP_PKEY_CTX_set_group_name"},
        {&library.keygen, "EVP_PKEY_keygen"},
        {&library.key_free, "EVP_PKEY_free"},
        {&library.sha256, "EVP_sha256"},
        {&library.random_bytes, "RAND_bytes"},
        {&library.certificate_new, "X509_new"},
        {&library.certificate_free, "X509_free"},
        {&library.set_version, "X509_set_version"},
        {&library.serial_number, "X509_get_serialNumber"},
        {&library.set_integer, "ASN1_INTEGER_set_uint64"},
        {&library.not_before, "X509_getm_notBefore"},
        {&library.not_after, "X509_getm_notAfter"},
        {&library.adjust_time, "X509_gmtime_adj"},
        {&library.set_key, "X509_set_pubkey"},
        {&library.subject, "X509_get_subject_name"},
        {&library.add_entry, "X509_NAME_add_entry_by_txt"},
        {&library.set_issuer, "X509_set_issuer_name"},
        {&library.make_extension, "X509V3_EXT_conf_nid"},
        {&library.add_extension, "X509_add_ext"},
        {&library.extension_free, "X509_EXTENSION_free"},
        {&library.sign, "X509_sign"},
        {&library.digest, "X509_digest"},
        {NULL, NULL},
    };
    // Threads of connections may still run while the process exits, so OpenSSL must not free its data then.
    is_loaded = imprint_load_library(names, symbols) && library.init(NO_ATEXIT, NULL) == 1;
}

int imprint_can_use_tls(void) {
    pthread_once(&loading, load);
    return is_loaded;
}

static evp_key *create_key(void) {
    evp_key *key = NULL;
    evp_context *context = library.key_context_new(KEY_EC, NULL);
    if (!context) return NULL;
    if (library.keygen_init(context) != 1 || library.set_group_name(context, "P-256") != 1
        || library.keygen(context, &key) != 1)
        key = NULL;
    library.key_context_free(context);
    return key;
}

static int add_extension(x509 *certificate, int kind, const char *value) {
    x509_extension *extension = library.make_extension(NULL, NULL, kind, value);
    if (!extension) return 0;
    int is_added = library.add_extension(certificate, extension, -1) == 1;
    library.extension_free(extension);
    return is_added;
}

/// Sets all fields of a certificate and signs it.
static int complete_certificate(x509 *certificate, evp_key *key, const char *address) {
    static const char name[] = "Imprint Studio";
    const long hour = 3600, day = 24 * hour;
    uint64_t serial;
    char alternative[80];
    int count = snprintf(alternative, sizeof alternative, "IP:%s", address);
    if (count < 0 || count >= (int)sizeof alternative) return 0;
    if (library.random_bytes((unsigned char *)&serial, sizeof serial) != 1) return 0;
    x509_name *subject = library.subject(certificate);
    int version_3 = 2;
    // The clock of the client may be late.
    return library.set_version(certificate, version_3) == 1
        && library.set_integer(library.serial_number(certificate), serial >> 1 | 1) == 1
        && library.adjust_time(library.not_before(certificate), -hour)
        && library.adjust_time(library.not_after(certificate), 7 * day)
        && library.set_key(certificate, key) == 1
        && library.add_entry(
               subject, "CN", STRING_UTF8, (const unsigned char *)name, (int)strlen(name), -1, 0) == 1
        && library.set_issuer(certificate, subject) == 1
        && add_extension(certificate, NID_BASIC_CONSTRAINTS, "critical,CA:FALSE")
        && add_extension(certificate, NID_EXTENDED_KEY_USAGE, "serverAuth")
        && add_extension(certificate, NID_SUBJECT_ALT_NAME, alternative)
        && library.sign(certificate, key, library.sha256()) > 0;
}

/// Configures a context with a new certificate. Returns whether it succeeds.
static int configure(ssl_context *context, const char *address, uint8_t fingerprint[32]) {
    unsigned int count = 32;
    int is_ready = 0;
    evp_key *key = create_key();
    x509 *certificate = library.certificate_new();
    if (key && certificate) {
        long mode = MODE_ENABLE_PARTIAL_WRITE | MODE_ACCEPT_MOVING_WRITE_BUFFER | MODE_RELEASE_BUFFERS;
        library.context_control(context, CONTROL_MODE, mode, NULL);
        library.context_set_options(context, OPTION_NO_RENEGOTIATION);
        is_ready = library.context_control(context, CONTROL_MINIMUM_VERSION, VERSION_TLS_1_2, NULL) == 1
            && library.context_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
            && complete_certificate(certificate, key, address)
            && library.context_use_certificate(context, certificate) == 1
            && library.context_use_key(context, key) == 1
            && library.digest(certificate, library.sha256(), fingerprint, &count) == 1 && count == 32;
    }
    library.certificate_free(certificate);
    library.key_free(key);
    return is_ready;
}

imprint_tls *imprint_tls_create(const char *address, uint8_t fingerprint[32], char message[128]) {
    message[0] = 0;
    if (!imprint_can_use_tls()) return NULL;
    library.clear_errors();
    ssl_context *context = library.context_new(library.server_method());
    if (context && configure(context, address, fingerprint)) return (imprint_tls *)context;
    library.describe_error(library.last_error(), message, 128);
    library.clear_errors();
    library.context_free(context);
    return NULL;
}

void imprint_tls_free(imprint_tls *server) { library.context_free((ssl_context *)server); }

imprint_tls_connection *imprint_tls_open(imprint_tls *server, int socket) {
    imprint_tls_connection *connection = library.open((ssl_context *)server);
    if (connection && library.set_socket(connection, socket) != 1) {
        library.free(connection);
        return NULL;
    }
    return connection;
}

/// Returns the result of an operation; OpenSSL requires an empty error queue before it.
static int result_of(imprint_tls_connection *connection, int result) {
    if (result > 0) return result;
    switch (library.get_error(connection, result)) {
    case ERROR_WANT_READ: return IMPRINT_TLS_WANTS_READ;
    case ERROR_WANT_WRITE: return IMPRINT_TLS_WANTS_WRITE;
    case ERROR_ZERO_RETURN: return IMPRINT_TLS_CLOSED;
    default: return IMPRINT_TLS_FAILED;
    }
}

int imprint_tls_accept(imprint_tls_connection *connection) {
    library.clear_errors();
    return result_of(connection, library.accept(connection));
}

int imprint_tls_read(imprint_tls_connection *connection, uint8_t *bytes, int count) {
    library.clear_errors();
    return result_of(connection, library.read(connection, bytes, count));
}

int imprint_tls_write(imprint_tls_connection *connection, const uint8_t *bytes, int count) {
    library.clear_errors();
    return result_of(connection, library.write(connection, bytes, count));
}

void imprint_tls_close(imprint_tls_connection *connection) {
    library.clear_errors();
    library.shutdown(connection);
    library.clear_errors();
    library.free(connection);
}

#else

int imprint_can_use_tls(void) { return 0; }

imprint_tls *imprint_tls_create(const char *address, uint8_t fingerprint[32], char message[128]) {
    message[0] = 0;
    return NULL;
}

void imprint_tls_free(imprint_tls *server) {}

imprint_tls_connection *imprint_tls_open(imprint_tls *server, int socket) { return NULL; }

int imprint_tls_accept(imprint_tls_connection *connection) { return IMPRINT_TLS_FAILED; }

int imprint_tls_read(imprint_tls_connection *connection, uint8_t *bytes, int count) { return IMPRINT_TLS_FAILED; }

int imprint_tls_write(imprint_tls_connection *connection, const uint8_t *bytes, int count) {
    return IMPRINT_TLS_FAILED;
}

void imprint_tls_close(imprint_tls_connection *connection) {}

#endif
