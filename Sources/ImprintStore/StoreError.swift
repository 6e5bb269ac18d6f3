public import ImprintCore

/// What can go wrong with a store of models, beyond what files say themselves (`FileError`).
///
/// Wherever an installation fails, the models that were in the store are as they were. URLs are named without user name, password, query
/// and fragment, since these may be secrets.
public enum StoreError: DescribedError, Equatable {
    /// What is to vouch for a model has not the form that it should.
    case invalidVerification(what: String, found: String, expected: String)
    /// A URL is neither that of a file nor of a web server.
    case unsupportedURL(String)
    /// A server sends to a place where a store does not follow.
    case redirectRefused(url: String, target: String, reason: String)
    /// A server says that it does not give the file.
    case refusedByServer(url: String, status: Int)
    /// A server breaks the rules of HTTP.
    case invalidResponse(url: String, reason: String)
    /// A model has more bytes than it may; how many is not known where the server does not say.
    case tooLarge(url: String, byteCount: Int?, limit: Int)
    /// A server is slower than it may be.
    case tooSlow(url: String, byteCount: Int, interval: Duration, expected: Int)
    /// A download took longer than it may.
    case tookTooLong(url: String, limit: Duration)
    /// A download broke off; what came stays, to go on from.
    case brokenOff(url: String, byteCount: Int, reason: String)
    /// A file is another than was asked for.
    case wrongDigest(url: String, found: String, expected: String)
    /// A file was not signed by the owner of the key, or changed since.
    case wrongSignature(url: String)
    /// A verified file is no model that runs here.
    case unusable(url: String, reason: String)
    /// Another installation is under way in the store, or another process changes it.
    case inUse(folder: String)
    /// There is no model in the store yet.
    case empty(folder: String)
    /// There is no model to go back to.
    case nothingToRollBackTo(folder: String)
    /// The file of an installed model is not there, or not as it was installed.
    case damaged(file: String, reason: String, canRollBack: Bool)
    /// The file that says which models there are is not whole.
    case damagedIndex(file: String)
    /// The file that says which models there are was written by a newer version.
    case newerIndex(file: String, found: Int, newest: Int)

    /// What was found, what was expected and how to mend it.
    public var description: String {
        switch self {
        case .invalidVerification(let what, let found, let expected):
            "the \(what) to verify a model by is \(found), expected \(expected)"
        case .unsupportedURL(let url):
            "\(url): a model can be installed from a file, http or https URL only; fetch it otherwise, then install the file"
        case .redirectRefused(let url, let target, let reason):
            "\(url): the server sends to \(target), which is refused (\(reason)); install from the URL where the file is"
        case .refusedByServer(let url, let status):
            "\(url): the server answered with status \(status), expected 200; check the URL, and that the server gives the file to everyone"
        case .invalidResponse(let url, let reason):
            "\(url): the server's answer is not valid (\(reason)); install again, and mend the server where that does not help"
        case .tooLarge(let url, let byteCount, let limit):
            "\(url): the file has \(byteCount.map { "\($0)" } ?? "more") bytes, and may have \(limit); check the URL, or allow more in the "
                + "limits"
        case .tooSlow(let url, let byteCount, let interval, let expected):
            "\(url): \(byteCount) bytes came in \(interval), expected \(expected) at least; install again later, which goes on from "
                + "what came, or allow less in the limits"
        case .tookTooLong(let url, let limit):
            "\(url): the download was not done in \(limit); install again, which goes on from what came, or allow more time in the limits"
        case .brokenOff(let url, let byteCount, let reason):
            "\(url): the download broke off after \(byteCount) bytes (\(reason)); install again, which goes on from there if the server can"
        case .wrongDigest(let url, let found, let expected):
            "\(url): the file has the SHA-256 \(found), expected \(expected); it was damaged or replaced, so it was not installed. Install "
                + "again, or ask for the right digest"
        case .wrongSignature(let url):
            "\(url): the signature is not one of this file by this key, so it was not installed; check that file, signature and public key "
                + "belong together"
        case .unusable(let url, let reason):
            "\(url): the file is what it should be, but does not run here, so it was not installed: \(reason)"
        case .inUse(let folder):
            "\(folder): another installation into this store is under way; wait for its end"
        case .empty(let folder):
            "\(folder): there is no model in this store yet; install one"
        case .nothingToRollBackTo(let folder):
            "\(folder): there is no earlier model in this store; install the one that you want"
        case .damaged(let file, let reason, let canRollBack):
            "\(file): the installed model is not as it was verified (\(reason)), so it is not loaded; install it again"
                + (canRollBack ? ", or go back to the one before by rollBack()" : "")
        case .damagedIndex(let file):
            "\(file): the list of installed models is damaged; install the model again, which writes it anew"
        case .newerIndex(let file, let found, let newest):
            "\(file): the list of installed models has format \(found), and this version knows formats to \(newest); update Imprint"
        }
    }
}
