internal import Imprint
internal import ImprintModel

/// Suggests the verb or option that helps after an error, because errors of the library do not name any.
func hint(for error: any Error) -> String? {
    switch error {
    case ImprintError.noHead: "--base adds a head to networks that end in global average pooling or sigmoids."
    case ImprintError.noAveragePooling: "Leave out --pool-maximum."
    case ImprintError.tooFewReadablePhotos: "A larger --memory keeps more photos in memory."
    case ImprintError.cannotAddLabel: "imprint train-detector --artwork LABEL=FILE trains a detector for it."
    case ImprintError.featuresExceedMemoryLimit: "--memory sets the limit."
    case let error as ModelFileError:
        switch error.problem {
        case .checkpoint: "imprint train --resume finishes the run and writes a model."
        case .personalization: "Name the model that it was made for, and this file with --personalization."
        case .notAPersonalization: "imprint personalize makes one from a model and photos."
        case .foreign: "imprint train makes a model."
        default: nil
        }
    case let error as SafetensorsError:
        if case .headerTooLong = error.problem {
            "imprint import makes a model file from an ONNX, Core ML or Caffe model."
        } else {
            nil
        }
    default: nil
    }
}
