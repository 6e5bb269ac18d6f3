internal import ImprintCore

/// An error of sharing a page on the local network.
package enum ShareError: DescribedError, Equatable {
    /// OpenSSL 3 is not installed, or the build leaves out the package trait `Share`.
    case missingLibrary
    /// OpenSSL could not create the certificate.
    case noCertificate(reason: String)
    /// This machine has no address in a private network.
    case noLocalAddress
    /// The address is not an address of this machine, or none of the ports is free.
    case unavailableAddress(String, reason: String)
    /// The page is shared at another address already.
    case alreadyShared(url: String)
    /// The server was stopped.
    case serverStopped

    /// The error and its remedy.
    package var description: String {
        switch self {
        case .missingLibrary:
            "The page cannot be shared: this program cannot use OpenSSL 3 (libssl.so.3), which encrypts the connections. Install "
                + "libssl3 or libssl3t64 (Debian, Ubuntu) or openssl@3 (Homebrew)."
        case .noCertificate(let reason):
            "The page cannot be shared: OpenSSL could not create a certificate: \(reason.clause). Check the installation of OpenSSL 3."
        case .noLocalAddress:
            "The page cannot be shared: this machine has no IPv4 address in a private network (10.x, 172.16.x to 172.31.x or "
                + "192.168.x). Connect it to the local network, or choose one of its addresses."
        case .unavailableAddress(let address, let reason):
            "The page cannot be shared: cannot listen on \(address): \(reason.clause). Choose an IPv4 address of this machine."
        case .alreadyShared(let url):
            "The page cannot be shared again: it is already shared at \(url). Use this address."
        case .serverStopped:
            "The page cannot be shared: its server was stopped. Start the server again."
        }
    }
}
