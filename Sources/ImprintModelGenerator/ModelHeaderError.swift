/// An error in generating the type of a model file.
struct ModelHeaderError: Error, Equatable, CustomStringConvertible {
    let path: String
    let problem: Problem

    enum Problem: Error, Equatable {
        case cannotRead(reason: String)
        case noHeaderLength(fileLength: UInt64)
        case headerTooLong(UInt64)
        case headerBeyondEnd(UInt64, fileLength: UInt64)
        case malformedHeader
        case foreign
        case checkpoint
        case personalization
        case unknownFormat(String)
        case wrongDataLength(found: UInt64, expected: UInt64)
        case noLabels
        case duplicateLabel(String)
        case sameType(String, as: String)
    }

    /// The file, the problem, the expected content and the fix.
    var description: String {
        let downloadAgain = "Get the file again from its source"
        let text =
            switch problem {
            case .cannotRead(let reason):
                "cannot be read (\(reason)). Check the name and that you may read the file"
            case .noHeaderLength(let length):
                "the file is not a model file: it has \(bytes(length)), expected at least the 8 bytes of the header length. "
                    + downloadAgain
            case .headerTooLong(let length):
                "the file is not a model file: its header length is \(length), expected at most \(ModelMetadata.maximumHeaderLength). "
                    + "Use an Imprint model; if the file is a Git LFS pointer, fetch its content"
            case .headerBeyondEnd(let headerLength, let fileLength):
                "the file is not a model file or was cut off: a header of \(bytes(headerLength)) does not fit into \(bytes(fileLength)). "
                    + downloadAgain
            case .malformedHeader:
                "the file is not a model file or is damaged: its header is not the JSON of a safetensors file. \(downloadAgain)"
            case .foreign:
                "the file is a safetensors file, but not an Imprint model: its metadata has no imprint.format"
            case .checkpoint:
                "the file is the checkpoint of a run, not a model. Resume the run to get a model"
            case .personalization:
                "the file is a personalization, not a model. Add its base model to the resources, and apply the personalization in code"
            case .unknownFormat(let format):
                "the file has the format \(format.debugDescription), expected 1 to \(ModelMetadata.newestFormat). Update Imprint, or get the "
                    + "file again from its source"
            case .wrongDataLength(let found, let expected):
                "the file \(found < expected ? "was cut off" : "is damaged"): it has \(bytes(found)) of tensors, expected \(expected) "
                    + "from its header. \(downloadAgain)"
            case .noLabels:
                "the file has no valid imprint.labels in its metadata, expected a JSON array of at least one string. \(downloadAgain)"
            case .duplicateLabel(let label):
                "the file has the label \(label.debugDescription) twice. Labels must be unique. \(downloadAgain)"
            case .sameType(let type, let other):
                "its type would be called \(type), like the type of \(other). Rename one of the two files"
            }
        return "\(path): \(text)."
    }

    private func bytes(_ count: UInt64) -> String { count == 1 ? "1 byte" : "\(count) bytes" }
}
