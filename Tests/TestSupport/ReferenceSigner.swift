public import Foundation

/// The reference implementation of OpenSSF Model Signing and the CycloneDX validator: the Python environment in the environment
/// variable `IMPRINT_SIGNING`.
public enum ReferenceSigner {
    /// The path of the Python interpreter; nil if the variable is not set.
    public static let python = ProcessInfo.processInfo.environment["IMPRINT_SIGNING"]

    /// The reason why tests are skipped.
    public static let skipReason = "IMPRINT_SIGNING does not name a Python with model-signing; ./run test sets it"

    /// Runs `model_signing`.
    public static func run(_ arguments: String..., folder: URL) throws -> CommandOutput {
        try runPython(["-m", "model_signing"] + arguments, folder: folder)
    }

    /// Runs the interpreter.
    public static func runPython(_ arguments: [String], folder: URL) throws -> CommandOutput {
        guard let python else { throw CocoaError(.executableNotLoadable) }
        // Packages of other environments could be incompatible.
        return try TestSupport.run(URL(filePath: python), ["-E"] + arguments, folder: folder)
    }
}
