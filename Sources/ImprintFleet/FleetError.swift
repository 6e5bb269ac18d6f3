public import ImprintCore
public import ImprintStore

/// An error of a fleet client, other than errors of photos, models and files.
///
/// Messages contain neither photos nor paths of the device, except for the path of a key file.
public enum FleetError: DescribedError, Equatable {
    /// A URL is not an http or https URL.
    case unsupportedURL(String)
    /// A key file does not contain a private key on the curve P-256 or P-384.
    case invalidKey(path: String, reason: String)
    /// Another process uses the key.
    case keyInUse(path: String)
    /// The state file beside a key is damaged.
    case damagedState(path: String)
    /// A newer version of Imprint has written the state file beside a key.
    case newerState(path: String, found: Int, newest: Int)
    /// Earlier answers with the key had no noise, so no noise can limit ε.
    case unlimitedLoss(path: String)
    /// The server does not know the public key, and does not accept registrations.
    case unknownKey(url: String, publicKey: String)
    /// The server rejects the signature of a request.
    case rejectedSignature(url: String)
    /// The server rejects a request; `code` is Flower's number of the error, if there is one.
    case rejected(url: String, status: Int, code: Int?, detail: String)
    /// The server cannot be reached, or failed.
    case unavailable(url: String, reason: String)
    /// The certificate of the server is not trusted, or its proxy is unknown.
    case noConnection(StoreError)
    /// A response of the server is larger than the limit.
    case oversized(url: String, limit: Int)
    /// A response of the server does not follow the protocol.
    case malformed(reason: String)
    /// A message is for another model.
    case wrongModel(found: String, expected: String)
    /// A message asks for something that this client does not do.
    case unsupported(found: String, expected: String)

    /// Whether a later attempt may succeed without any change.
    var isTransient: Bool {
        switch self {
        // The name of a proxy may be unknown only until the network is up.
        case .unavailable, .noConnection(.noProxy): true
        case .rejected(_, let status, _, _): status >= 500 || status == 429 || status == 408
        default: false
        }
    }

    /// The error message: the found value, the expected value and how to fix the error.
    public var description: String {
        switch self {
        case .unsupportedURL(let url):
            "\(url): the URL of the SuperLink is not supported. Expected an http or https URL such as https://fleet.example:8000."
        case .invalidKey(let path, let reason):
            "\(path): the key cannot be used: \(reason). Expected a private key on the curve P-256 or P-384 in PEM format. "
                + "Name a file that does not exist, and Imprint creates a key."
        case .keyInUse(let path):
            "\(path): another process uses this key. Each device needs its own key. End the other process, or name another key."
        case .damagedState(let path):
            "\(path): the state of the key is damaged. Restore the file from a backup. Without a backup, use a new key and photos that "
                + "were not used for earlier answers, because ε would start from zero although these answers still count."
        case .newerState(let path, let found, let newest):
            "\(path): the state of the key needs a newer version of Imprint: it has format \(found), expected at most \(newest). "
                + "Update Imprint. Keep the file, because it records the privacy loss."
        case .unlimitedLoss(let path):
            "\(path): noise is set, but earlier answers with this key had no noise, so ε has no limit. Use a new key and photos that "
                + "no answer was computed from, or no noise."
        case .unknownKey(let url, let publicKey):
            "\(url): the server does not know this device's public key and does not accept new devices. "
                + "Register the key on the server. The public key:\n\(publicKey)"
        case .rejectedSignature(let url):
            "\(url): the server rejects this device's signature (status 401). Check the key, and the clocks of both machines: "
                + "they may differ by at most five minutes."
        case .rejected(let url, let status, _, let detail):
            "\(url): the server rejects the request with status \(status): \(detail.sentence) Expected the Fleet API of flwr 1.42 "
                + "or later."
        case .unavailable(let url, let reason):
            "\(url): the server is not available: \(reason.sentence) Check the URL and that the SuperLink is running."
        case .noConnection(let error): "\(error)"
        case .oversized(let url, let limit):
            "\(url): the response has more than \(limit) bytes, the maximum for this model, and was rejected. "
                + "Check that the server trains the head of this model."
        case .malformed(let reason):
            "The message does not follow the protocol: \(reason.sentence) Expected the Fleet API of flwr 1.42 or later."
        case .wrongModel(let found, let expected):
            "The message is for the model \(found), but this device has the model \(expected). "
                + "Start the fleet from the model file of the devices."
        case .unsupported(let found, let expected):
            "The message asks for \(found), expected \(expected)."
        }
    }
}
