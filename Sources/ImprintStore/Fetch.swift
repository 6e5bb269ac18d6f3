internal import Dispatch
package import Foundation
internal import ImprintCore
internal import Synchronization

extension URL {
    /// The URL for messages and records, without user name, password, query and fragment, which may be secret.
    package var redacted: String {
        guard !isFileURL, var parts = URLComponents(url: absoluteURL, resolvingAgainstBaseURL: true) else {
            return path
        }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        return parts.string ?? (scheme ?? "URL")
    }

    package var isWeb: Bool { ["http", "https"].contains(scheme?.lowercased() ?? "") && host()?.isEmpty == false }

    /// The target of a redirect with the header `Location` from this URL.
    func redirected(to location: String) throws(StoreError) -> URL {
        func rejected(_ target: String, _ reason: String) -> StoreError {
            .redirectRejected(url: redacted, target: target, reason: reason)
        }
        guard let target = URL(string: location, relativeTo: self)?.absoluteURL else {
            throw rejected("an invalid URL", "expected an http or https URL")
        }
        guard target.isWeb else {
            throw rejected("a URL with the scheme \(target.scheme ?? "")", "expected http or https")
        }
        guard scheme?.lowercased() == "http" || target.scheme?.lowercased() == "https" else {
            throw rejected(target.redacted, "from https to http")
        }
        return target
    }
}

/// Fetches a URL within limits.
struct Fetch: Sendable {
    let url: URL
    let limits: DownloadLimits

    private static let maximumRedirects = 10

    /// - Throws: `StoreError.unsupportedURL`.
    init(_ url: URL, _ limits: DownloadLimits) throws(StoreError) {
        guard url.isFileURL || url.isWeb else { throw .unsupportedURL(url.redacted) }
        self.url = url
        self.limits = limits
    }

    /// Reads the file of a file URL and passes each chunk to `onData`.
    func read(_ onData: (Data) throws -> Void) throws {
        let file = try RegularFile(url.path)
        try checkSize(file.byteCount)
        var count = 0
        try file.read { chunk in
            try Task.checkCancellation()
            count += chunk.count
            try checkSize(count, isTotal: false)
            try onData(Data(chunk))
        }
    }

    /// Sends a GET request and follows redirects.
    /// - Parameters:
    ///   - headers: The headers of the request.
    ///   - onResponse: Receives the header of the response.
    ///   - onData: Receives each chunk of the body.
    func get(
        headers: [String: String] = [:], onResponse: @escaping @Sendable (HTTPResponse) throws -> Void,
        onData: @escaping @Sendable (Data) throws -> Void
    ) async throws {
        let end = DispatchTime.now() + limits.time.dispatchInterval
        var target = url
        for _ in 0...Self.maximumRedirects {
            // A range of a compressed body would be useless.
            let request = HTTPRequest(
                target, headers: headers.merging(["Accept-Encoding": "identity"], uniquingKeysWith: { $1 }),
                certificates: limits.certificates)
            let exchange = HTTPExchange(onResponse: onResponse, onData: onData)
            switch try await exchange.run(request, until: end, limits) {
            case .complete: return
            case .redirect(let location): target = try target.redirected(to: location)
            }
        }
        throw StoreError.redirectRejected(
            url: url.redacted, target: target.redacted, reason: "more than \(Self.maximumRedirects) redirects")
    }

    /// Fetches a small file into memory.
    func small() async throws -> Data {
        let data = Mutex(Data())
        let add: @Sendable (Data) throws -> Void = { chunk in
            try data.withLock { data in
                data += chunk
                try checkSize(data.count, isTotal: false)
            }
        }
        if url.isFileURL {
            try read(add)
        } else {
            do {
                try await get(
                    onResponse: { response in
                        guard response.status == 200 else {
                            throw StoreError.unexpectedStatus(url: url.redacted, status: response.status)
                        }
                        try checkEncoding(response)
                    }, onData: add)
            } catch let error as HTTPError {
                throw error.storeError(url: url, byteCount: data.withLock(\.count))
            }
        }
        return data.withLock { $0 }
    }

    /// Checks that the body is not compressed, because it is never decompressed.
    func checkEncoding(_ response: HTTPResponse) throws(StoreError) {
        let encoding = response.header("Content-Encoding") ?? "identity"
        guard encoding.lowercased() == "identity" else {
            throw .invalidResponse(
                url: url.redacted,
                reason: "its Content-Encoding is \(encoding.prefix(40).debugDescription), expected none")
        }
    }

    /// Checks `byteCount` against the size limit.
    /// - Parameter isTotal: Whether `byteCount` is the total size of the file or a lower bound.
    func checkSize(_ byteCount: Int, isTotal: Bool = true) throws(StoreError) {
        guard byteCount <= limits.byteCount else {
            throw .tooLarge(url: url.redacted, byteCount: isTotal ? byteCount : nil, limit: limits.byteCount)
        }
    }
}
