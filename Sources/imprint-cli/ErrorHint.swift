internal import Imprint
internal import ImprintModel

/// Returns the verb or option that helps after an error; errors of the library do not name verbs or options.
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
        case .personalization: "Name its model, and this file with --personalization."
        case .notAPersonalization: "imprint personalize writes a personalization."
        case .foreign: "imprint train writes a model file."
        default: nil
        }
    case let error as SafetensorsError:
        if case .headerTooLong = error.problem {
            "imprint import converts ONNX, Core ML and Caffe models to model files."
        } else {
            nil
        }
    default: nil
    }
}
