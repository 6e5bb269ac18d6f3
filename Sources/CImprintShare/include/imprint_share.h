#ifndef IMPRINT_SHARE_H
#define IMPRINT_SHARE_H

#include <stddef.h>
#include <stdint.h>

/// The certificate, the key and the settings of a TLS server.
typedef struct imprint_tls imprint_tls;

/// A TLS connection on a socket.
typedef struct imprint_tls_connection imprint_tls_connection;

/// Results of operations on a connection that do not transfer bytes.
typedef enum {
    /// The client has ended the connection.
    IMPRINT_TLS_CLOSED = 0,
    /// The socket must become readable first.
    IMPRINT_TLS_WANTS_READ = -1,
    /// The socket must become writable first.
    IMPRINT_TLS_WANTS_WRITE = -2,
    /// The connection has failed and must be closed.
    IMPRINT_TLS_FAILED = -3,
} imprint_tls_result;

/// Returns whether OpenSSL 3 is installed and the build has the trait Share; loads the library.
int imprint_can_use_tls(void);

/// Creates a TLS server with a new P-256 key and a self-signed certificate, which is valid for seven days. TLS 1.2 is the minimum.
///
/// - address: the IP address in the certificate.
/// - fingerprint: receives the SHA-256 digest of the certificate.
/// - message: receives the null-terminated error message of OpenSSL.
/// Returns NULL if the library is missing or fails.
imprint_tls *imprint_tls_create(const char *address, uint8_t fingerprint[32], char message[128]);

void imprint_tls_free(imprint_tls *server);

/// Creates the connection of a non-blocking socket, which remains open when the connection is closed. Returns NULL without memory.
imprint_tls_connection *imprint_tls_open(imprint_tls *server, int socket);

/// Continues the handshake. Returns 1 at its end, or an `imprint_tls_result`.
int imprint_tls_accept(imprint_tls_connection *connection);

/// Returns the number of bytes read, or an `imprint_tls_result`.
int imprint_tls_read(imprint_tls_connection *connection, uint8_t *bytes, int count);

/// Returns the number of bytes written, or an `imprint_tls_result`.
int imprint_tls_write(imprint_tls_connection *connection, const uint8_t *bytes, int count);

/// Sends the end of the stream if possible without waiting, and frees the connection.
void imprint_tls_close(imprint_tls_connection *connection);

/// The maximum number of modules along a side of a QR code.
enum { IMPRINT_QR_MAXIMUM_SIDE = 177 };

/// Encodes a text as a QR code of the lowest error correction level, which makes the code as small as possible.
///
/// - modules: receives the rows of the code, 1 for dark; it has room for the square of the maximum side.
/// Returns the number of modules along a side, or 0 if libqrencode is missing or the text is too long.
int imprint_encode_qr(const char *text, uint8_t *modules);

#endif
