internal import ImprintCore

/// The error of a server that cannot start.
package enum ServeError: DescribedError, Equatable {
    /// The server cannot listen on its address; `reason` comes from the operating system.
    case unavailableAddress(host: String, port: Int, reason: String)
    /// The server would be open to other machines, but has no token.
    case missingToken(host: String)
    /// The process may open only `limit` files, fewer than the connections need.
    case tooManyConnections(count: Int, files: Int, limit: Int)

    /// The error and its remedy.
    package var description: String {
        switch self {
        case .unavailableAddress(let host, let port, let reason):
            "The server cannot listen on port \(port) of \(host): \(reason). Choose an IPv4 or IPv6 address of this machine, and a port "
                + "that no other program uses."
        case .missingToken(let host):
            "The server cannot listen on \(host) without a token, because other machines could use it. Set a token, or choose 127.0.0.1."
        case .tooManyConnections(let count, let files, let limit):
            "The server cannot have \(counted(count, "connection")): they need \(files) open files, and this process may open at most "
                + "\(limit). Choose fewer connections, or raise the limit of open files (ulimit -n)."
        }
    }
}
