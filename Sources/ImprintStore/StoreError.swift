public import ImprintCore

/// An error of a model store, other than file system errors (`FileError`).
///
/// A failed installation does not change the installed models. Messages omit user name, password, query and fragment of URLs,
/// which may be secret.
public enum StoreError: DescribedError, Equatable {
    /// The digest, key or signature for verification is malformed.
    case invalidVerification(name: String, found: String, expected: String)
    /// A URL is not a file, http or https URL.
    case unsupportedURL(String)
    /// A server redirects to a target that the store refuses to follow.
    case redirectRejected(url: String, target: String, reason: String)
    /// A server answers with an unexpected status; expected are 200 and, for a download that is resumed, 206 and 416.
    case unexpectedStatus(url: String, status: Int)
    /// The response of a server violates HTTP.
    case invalidResponse(url: String, reason: String)
    /// A file exceeds the limit `DownloadLimits.byteCount`; `byteCount` is nil if the server does not report the size.
    case tooLarge(url: String, byteCount: Int?, limit: Int)
    /// A download is slower than `DownloadLimits.bytesPerInterval`.
    case tooSlow(url: String, byteCount: Int, interval: Duration, expected: Int)
    /// A download exceeds the time limit `DownloadLimits.time`.
    case timedOut(url: String, limit: Duration)
    /// A download was interrupted; the next installation can resume it.
    case interrupted(url: String, byteCount: Int, reason: String)
    /// The certificate of a server is not trusted, or the file of certificate authorities cannot be used; `certificates` is the path of that
    /// file, or nil for the certificate authorities of the operating system.
    case untrusted(url: String, reason: String, certificates: String?)
    /// The address of the proxy is unknown.
    case noProxy(url: String, reason: String)
    /// The digest of a file differs from the expected one.
    case wrongDigest(url: String, found: String, expected: String)
    /// The Ed25519 signature of a file is not valid for the public key.
    case wrongSignature(url: String)
    /// A `ModelSignature` is malformed, or was not made with the key.
    case invalidSignature(SignatureError)
    /// A signed model is older than the newest one with the same public key; `found` is nil if the model has no version.
    case outdated(url: String, found: Int?, expected: Int)
    /// A verified file is not a model that can run here.
    case unusable(url: String, reason: String)
    /// Another installation or another process is changing the store.
    case inUse(folder: String)
    /// The store has no model yet.
    case empty(folder: String)
    /// The store has no previous model.
    case nothingToRollBackTo(folder: String)
    /// The file of an installed model is missing or has changed since its installation.
    case damaged(file: String, reason: String, canRollBack: Bool)
    /// The index file is damaged. It records the versions that protect from older models, so the store does not replace it.
    case damagedIndex(file: String)
    /// A newer version has written the index file.
    case newerIndex(file: String, found: Int, newest: Int)

    /// The error message: the found value, the expected value and how to fix the error.
    public var description: String {
        switch self {
        case .invalidVerification(let name, let found, let expected):
            "The \(name) for the verification of the model is invalid: found \(found), expected \(expected). "
                + "Get it again from the publisher of the model."
        case .unsupportedURL(let url):
            "\(url): the URL is not supported. Expected a file, http or https URL. Download the model, then install the file."
        case .redirectRejected(let url, let target, let reason):
            "\(url): the server redirects to \(target), which is not allowed (\(reason)). Use the final URL of the file."
        case .unexpectedStatus(let url, let status):
            "\(url): the server answered with status \(status), expected 200. Check the URL and the permissions of the file."
        case .invalidResponse(let url, let reason):
            "\(url): the response of the server is invalid: \(reason). Install again, or fix the server."
        case .tooLarge(let url, let byteCount, let limit):
            "\(url): the file has \(byteCount.map { counted($0, "byte") } ?? "too many bytes"), expected at most \(limit), "
                + "the limit of the download. Check the URL."
        case .tooSlow(let url, let byteCount, let interval, let expected):
            "\(url): the download is too slow: \(counted(byteCount, "byte")) in \(interval), expected at least \(expected). "
                + "Install again later to resume."
        case .timedOut(let url, let limit):
            "\(url): the download did not finish in \(limit). Install again to resume."
        case .interrupted(let url, let byteCount, let reason):
            "\(url): the download was interrupted after \(counted(byteCount, "byte")): \(reason). Install again to resume."
        case .untrusted(let url, let reason, let certificates):
            "\(url): there is no trusted connection to the server: \(reason.sentence) \(Self.advice(about: certificates))"
        case .noProxy(let url, let reason):
            "\(url): the proxy cannot be found: \(reason.sentence) Check the network, and the proxy in the environment variable https_proxy, "
                + "http_proxy or all_proxy."
        case .wrongDigest(let url, let found, let expected):
            "\(url): the file has the SHA-256 \(found), expected \(expected). It was damaged or replaced and is not installed. "
                + "Install again, or check the digest."
        case .wrongSignature(let url):
            "\(url): the signature does not match the file and the public key, so the file is not installed. "
                + "Check that all three belong together."
        case .invalidSignature(let error): "\(error)"
        case .outdated(let url, let found, let expected):
            "\(url): the model has \(found.map { "the version \($0)" } ?? "no version"), expected at least \(expected), "
                + "because this store has had a newer model with the same public key or requires this version. "
                + "The model is not installed. Get the newest model, or accept all versions."
        case .unusable(let url, let reason):
            "\(url): the file passed verification but cannot be used, so it is not installed: \(reason.sentence)"
        case .inUse(let folder):
            "\(folder): another installation is changing this store. Wait until it ends."
        case .empty(let folder):
            "\(folder): this store has no model yet. Install one."
        case .nothingToRollBackTo(let folder):
            "\(folder): this store has no previous model. Install the model that you want."
        case .damaged(let file, let reason, let canRollBack):
            "\(file): the installed model has changed since its verification (\(reason)) and is not loaded. Install it again"
                + (canRollBack ? ", or call rollBack() to restore the previous model." : ".")
        case .damagedIndex(let file):
            "\(file): the list of installed models is damaged, and nothing is changed. Restore the file from a backup. Or remove "
                + "it and install the model again; the store then forgets which versions it has had, and accepts older models."
        case .newerIndex(let file, let found, let newest):
            "\(file): the list of installed models has format \(found), expected at most \(newest). Update Imprint."
        }
    }

    /// Returns the advice about a server that is not trusted.
    private static func advice(about certificates: String?) -> String {
        guard let certificates else {
            return
                "Check the certificate of the server. For a certificate authority of your own, name its PEM file in the environment "
                + "variable SSL_CERT_FILE."
        }
        return
            "Check the certificate of the server, and the file of the only trusted certificate authorities, \(certificates)."
    }
}
