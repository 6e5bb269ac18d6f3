/// Why no type can be made of a file.
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

    /// The file, what was found, what was expected and what to do.
    var description: String {
        let again = "get the file again from its source"
        let text =
            switch problem {
            case .cannotRead(let reason):
                "cannot be read (\(reason)); check the name and that you may read the file"
            case .noHeaderLength(let length):
                "is not a weights file: it has \(length) bytes, and the header's length alone takes 8; \(again)"
            case .headerTooLong(let length):
                "is not a weights file: it does not begin with the length of a header, at most \(ModelMetadata.greatestHeaderLength) "
                    + "(found \(length)); make one with imprint train or imprint import, or fetch it where it is a pointer of Git LFS"
            case .headerBeyondEnd(let headerLength, let fileLength):
                "is not a weights file or was cut off: a header of \(headerLength) bytes does not fit into \(fileLength); \(again)"
            case .malformedHeader:
                "is not a weights file or is damaged: its header is not the JSON of a safetensors file; \(again)"
            case .foreign:
                "is a safetensors file, but not a model of Imprint: its metadata has no imprint.format"
            case .checkpoint:
                "is the checkpoint of a run, not a model; finish the run with imprint train --resume, which writes one"
            case .personalization:
                "is a personalization, not a model; put the model that it was made for into the resources, and apply this file in code"
            case .unknownFormat(let format):
                "has the format \(format.debugDescription), expected 1 to \(ModelMetadata.newestFormat); update Imprint, or \(again)"
            case .wrongDataLength(let found, let expected):
                "\(found < expected ? "was cut off" : "is damaged"): it holds \(found) bytes of tensors, its header announces "
                    + "\(expected); \(again)"
            case .noLabels:
                "has no usable imprint.labels in its metadata, expected a JSON array of at least one text; \(again)"
            case .duplicateLabel(let label):
                "has the label \(label.debugDescription) twice; each label must be there once: \(again)"
            case .sameType(let type, let other):
                "its type would be called \(type), as that of \(other); give one of the two files another name"
            }
        return "\(path): \(text)"
    }
}
