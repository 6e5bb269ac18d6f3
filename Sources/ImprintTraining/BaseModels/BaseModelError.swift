public import ImprintCore

/// An error of a folder of base models, other than file system errors (`FileError`).
public enum BaseModelError: DescribedError, Equatable {
    /// The folder has no base model with this name.
    case notInstalled(name: String, folder: String)
    /// The model file of a base model is missing, or the file or its record is unreadable or has changed since its installation.
    case damaged(name: String, file: String, reason: String)
    /// A newer version of Imprint has installed the base model.
    case newerRecord(name: String, file: String)
    /// Another process is changing the folder.
    case inUse(folder: String)

    /// The error in two or three sentences, with a way to fix it.
    public var description: String {
        switch self {
        case .notInstalled(let name, let folder):
            "\(folder): the base model \(name.debugDescription) is not installed. Install it, or choose an installed one."
        case .damaged(let name, let file, let reason):
            "\(file): the base model \(name.debugDescription) has changed since its installation (\(reason)) and is not loaded. "
                + "Install it again."
        case .newerRecord(let name, let file):
            "\(file): the base model \(name.debugDescription) needs a newer version of Imprint. Update Imprint, or remove the base model."
        case .inUse(let folder):
            "\(folder): another process is installing or removing a base model. Wait until it ends, then try again."
        }
    }
}
