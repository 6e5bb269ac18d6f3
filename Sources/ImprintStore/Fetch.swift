internal import Dispatch
internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

extension URL {
    /// The URL as messages and records name it: without what may be a secret.
    var shown: String {
        guard !isFileURL, var parts = URLComponents(url: absoluteURL, resolvingAgainstBaseURL: true) else {
            return path
        }
        (parts.user, parts.password, parts.query, parts.fragment) = (nil, nil, nil, nil)
        return parts.string ?? (scheme ?? "URL")
    }

    fileprivate var isWeb: Bool { ["http", "https"].contains(scheme?.lowercased() ?? "") && host()?.isEmpty == false }

    /// Where a server at this URL sends to by the header `Location`.
    func redirected(to location: String) throws(StoreError) -> URL {
        func refused(_ target: String, _ reason: String) -> StoreError {
            .redirectRefused(url: shown, target: target, reason: reason)
        }
        guard let target = URL(string: location, relativeTo: self)?.absoluteURL else {
            throw refused("a place that is no URL", "expected one of http or https")
        }
        guard target.isWeb else {
            throw refused("a URL of the scheme \(target.scheme ?? "")", "expected http or https")
        }
        guard scheme?.lowercased() == "http" || target.scheme?.lowercased() == "https" else {
            throw refused(target.shown, "from https to http")
        }
        return target
    }
}

/// Gets what is at a URL, within limits.
struct Fetch: Sendable {
    let url: URL
    let limits: DownloadLimits

    private static let mostRedirects = 10

    /// - Throws: `StoreError.unsupportedURL`.
    init(_ url: URL, _ limits: DownloadLimits) throws(StoreError) {
        guard url.isFileURL || url.isWeb else { throw .unsupportedURL(url.shown) }
        self.url = url
        self.limits = limits
    }

    /// Reads a file, piece by piece, that a file URL names.
    func read(_ onData: (Data) throws -> Void) throws {
        let file = try RegularFile(url.path)
        try checkSize(file.byteCount)
        var count = 0
        try file.read { piece in
            try Task.checkCancellation()
            count += piece.count
            try checkSize(count, isAll: false)
            try onData(Data(piece))
        }
    }

    /// Asks a web server, and those that it sends to.
    /// - Parameters:
    ///   - headers: Of the request.
    ///   - onResponse: Takes the header of the answer.
    ///   - onData: Takes the pieces of its body.
    func get(
        headers: [String: String] = [:], onResponse: @escaping @Sendable (HTTPURLResponse) throws -> Void,
        onData: @escaping @Sendable (Data) throws -> Void
    ) async throws {
        let end = DispatchTime.now() + limits.time.dispatchInterval
        var place = url
        for _ in 0...Self.mostRedirects {
            var request = URLRequest(url: place, cachePolicy: .reloadIgnoringLocalCacheData)
            // A range of a compressed body would be of no use.
            for (name, value) in headers.merging(["Accept-Encoding": "identity"], uniquingKeysWith: { $1 }) {
                request.setValue(value, forHTTPHeaderField: name)
            }
            let exchange = HTTPExchange(onResponse: onResponse, onData: onData)
            switch try await exchange.run(request, until: end, limits) {
            case .complete: return
            case .redirect(let location): place = try place.redirected(to: location)
            }
        }
        throw StoreError.redirectRefused(
            url: url.shown, target: place.shown, reason: "more than \(Self.mostRedirects) redirects")
    }

    /// All of a small file.
    func small() async throws -> Data {
        let data = Mutex(Data())
        let add: @Sendable (Data) throws -> Void = { piece in
            try data.withLock { data in
                data += piece
                try checkSize(data.count, isAll: false)
            }
        }
        if url.isFileURL {
            try read(add)
        } else {
            do {
                try await get(
                    onResponse: { response in
                        guard response.statusCode == 200 else {
                            throw StoreError.refusedByServer(url: url.shown, status: response.statusCode)
                        }
                    }, onData: add)
            } catch let error as URLError {
                throw StoreError.brokenOff(
                    url: url.shown, byteCount: data.withLock(\.count), reason: error.localizedDescription)
            }
        }
        return data.withLock { $0 }
    }

    /// Checks that a file of `byteCount` bytes may be had.
    /// - Parameter isAll: Whether the file has so many; else it has so many at least.
    func checkSize(_ byteCount: Int, isAll: Bool = true) throws(StoreError) {
        guard byteCount <= limits.byteCount else {
            throw .tooLarge(url: url.shown, byteCount: isAll ? byteCount : nil, limit: limits.byteCount)
        }
    }
}
