internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintBaseModels
internal import ImprintCore
internal import ImprintFleet
internal import ImprintImages
internal import ImprintInterop
internal import ImprintLive
internal import ImprintMPI
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintServe
internal import ImprintStore
internal import ImprintSynthesis
internal import ImprintTraining

/// An error of the library that concerns a file or the value of an option, and does not name it.
struct LocatedError: DescribedError {
    /// The file or the option.
    let location: String
    let error: any Error

    var description: String { "\(location): \(error)" }
}

/// Calls `body`, and adds a file to errors of models and networks, which do not name it.
func naming<Result>(_ file: String, _ body: () throws -> Result) throws -> Result {
    do {
        return try body()
    } catch let error where error is ImprintError || error is NetworkError {
        throw LocatedError(location: file, error: error)
    }
}

/// An error of the content of a file that an option names; a failure, unlike a `ValidationError`, which means wrong usage.
struct InvalidContent: DescribedError {
    let description: String
}

/// An error with a hint that is right only in one subcommand.
struct HintedError: DescribedError {
    let error: any Error
    let hint: String

    var description: String { "\(error)" }
}

/// Calls `body`, and adds the hint of the subcommand to an error for which it has one.
/// - Parameters:
///   - hint: Returns the hint, or nil if the subcommand has none.
///   - body: The work of the subcommand.
func hinting<Result>(_ hint: (any Error) -> String?, _ body: () throws -> Result) throws -> Result {
    do {
        return try body()
    } catch {
        guard let text = hint(error) else { throw error }
        throw HintedError(error: error, hint: text)
    }
}

/// Returns the subcommand or option that helps after an error; errors of the library do not name subcommands or options.
/// - Parameters:
///   - error: The error.
///   - command: The subcommand that failed; a hint names only options that it has, or another subcommand.
func hint(for error: any Error, in command: any ParsableCommand.Type = ImprintCommand.self) -> String? {
    switch error {
    case ImprintError.noHead where has("--base", command):
        "--base adds a head to networks that end in global average pooling or sigmoids."
    case ImprintError.needsBoxes: "--annotations names a file or folder of boxes."
    case ImprintError.missingMetric("threshold", _, _):
        "--threshold 0.5 requires a confidence of at least 0.5 for all labels."
    case ImprintError.missingMetric: "Leave out --minimum-precision and --minimum-recall."
    case ImprintError.noAveragePooling: "Leave out --pool-maximum."
    case ImprintError.tooFewReadablePhotos where has("--memory", command):
        "A larger --memory keeps more photos in memory."
    case ImprintError.notADetector: "imprint train-detector trains a detector; imprint classify runs other models."
    case ImprintError.cannotAddLabel: "imprint personalize --artwork LABEL=FILE or --annotations FILE adds it."
    case ImprintError.featuresExceedMemoryLimit where has("--memory", command): "--memory sets the limit."
    case ImprintError.noUsablePhotoInTime: "--time-limit sets the limit."
    case ImprintError.invalidSetting("precision", _, _): "imprint quantize writes a model that computes in int8."
    case ImprintError.unfinishedCheckpoint(let file, _), ImprintError.stoppedTooEarly(let file?),
        ImprintError.checkpointMismatch(let file, "kind of model", _, _):
        "\(resumingCommand(file)) continues the run."
    case ImprintError.stoppedTooEarly(nil): "--checkpoint saves a run, so that --resume can continue it."
    case ImprintError.checkpointMismatch(_, let setting, _, _):
        optionName(ofSetting: setting).map { "The setting belongs to \($0)." }
    case ImprintError.checkpointOfOtherPhotos, ImprintError.finishedWithOtherPhotos:
        "Without --resume and with another folder for --checkpoint, a new run trains on these photos."
    case BaseModelError.notInstalled: "imprint models list shows the installed base models."
    case BaseModelError.damaged: "imprint models list shows the command that fixes it."
    case BaseModelError.newerRecord(let name, _): "imprint models remove \(name) removes it."
    case BaseInstallationError.invalidName, BaseInstallationError.reservedName: "--name sets the name."
    case BaseInstallationError.nameTaken(let name, _):
        "imprint models remove \(name) removes it; --name sets another name."
    case BaseInstallationError.invalidDigest, BaseInstallationError.wrongDigest: "--sha256 sets the expected SHA-256."
    case StoreError.tooLarge, StoreError.tooSlow, StoreError.timedOut:
        "Or download the file with another program, which has no such limit; imprint models install FILE installs it."
    case FleetError.invalidKey, FleetError.keyInUse: "--key names the file."
    case FleetError.unknownKey: "flwr supernode register registers the file of --key with the extension pub."
    case MPIError.missing:
        "swift build -c release --product imprint --traits MPI,HEIC,SVG,Share builds it. To start runs that do not share work, unset "
            + "OMPI_COMM_WORLD_SIZE and PMI_SIZE."
    case MPIError.invalidCount:
        "The option -np of mpirun sets the number of processes, and --threads the cores of each."
    case SignatureError.wrongKey: "--public-key names the file of the public key."
    case ServeError.tooManyConnections: "--max-connections sets the number of connections."
    case ShareError.noLocalAddress, ShareError.unavailableAddress: "--share-address names the address."
    case let error as HintedError: error.hint
    case let error as ProcessFailedError: error.advice.hint
    case let error as ProcessMismatchError: hint(forDifferent: error.differences.map(\.property))
    case DrawingError.hasBoxes, ImageError.hasBoxes: annotationsHint
    case ImageError.splitFolders(let folder, let splits, let labels) where !labels.isEmpty:
        hint(forSplits: splits, in: folder, command)
    case let error as LabelListError: hint(forWrongList: error, command)
    case let error as LocatedError: hint(for: error.error, in: command)
    case let error as ImportError: hint(for: error.problem) ?? kindOfUnknownFormat(error)
    case let error as ModelFileError:
        switch error.problem {
        case .checkpoint: "\(resumingCommand(error.path)) finishes the run and writes a model."
        case .personalization: personalizationHint(error.path, command)
        case .notAPersonalization: "imprint personalize writes a personalization."
        case .foreign: hint(toImport: .safetensors, "a PyTorch checkpoint", error.path)
        default: nil
        }
    case FileError.cannotRead(let path, _) where path.hasSuffix(".mlpackage") && FileStatus(URL(filePath: path)) != nil:
        "imprint import converts a Core ML package to a model file."
    case let error as SafetensorsError: hint(forWrongModel: error)
    default: nil
    }
}

/// Whether a subcommand has an option; true for an unknown subcommand.
private func has(_ option: String, _ command: any ParsableCommand.Type) -> Bool {
    command == ImprintCommand.self || CommandLineArguments.options(of: command).contains(option)
}

/// Returns the hint about a personalization in the position of a model.
private func personalizationHint(_ file: String, _ command: any ParsableCommand.Type) -> String {
    CommandLineArguments.options(of: command).contains("--personalization")
        ? "Pass the model that it was made for, and this file with --personalization."
        : "imprint merge writes a model file with its changes: imprint merge MODEL \(shellQuoted(file)) --output merged.imprint"
}

/// Returns the options of settings that differ between processes; nil if their names do not differ from those of the settings.
private func hint(forDifferent settings: [String]) -> String? {
    let options = settings.compactMap { optionName(ofSetting: $0) }
    return options.isEmpty ? nil : "The options of these settings: \(options.joined(separator: "; "))."
}

/// The hint about bounding boxes where something else is expected.
let annotationsHint =
    "imprint train-detector --annotations trains a detector with it; evaluate and audit have the same option."

/// Returns the argument and the option for the parts of a dataset split; nil if the subcommand has no validation set, or the split has none.
private func hint(forSplits splits: [String], in folder: URL, _ command: any ParsableCommand.Type) -> String? {
    func path(_ key: String) -> String? {
        splits.first { BoxFormat.partKey(ofPath: $0) == key }
            .map { shellQuoted(folder.appending(path: $0).displayPath) }
    }
    guard CommandLineArguments.options(of: command).contains("--validation"), let training = path("train"),
        let validation = path("val")
    else { return nil }
    return "Name the folders with \(training) --validation \(validation)."
}

/// Returns the subcommand or option that helps if a file of another kind was named as labelled photos; nil for a problem of the list itself.
private func hint(forWrongList error: LabelListError, _ command: any ParsableCommand.Type) -> String? {
    switch error.problem {
    case .hasBoxes: return annotationsHint
    case .otherKind: break
    default: return nil
    }
    let path = error.file.displayPath
    switch FileKind(contentsOf: error.file) {
    case .checkpoint?:
        return "\(resumingCommand(path)) continues the run; --checkpoint names the folder of the checkpoint."
    case .personalization?: return personalizationHint(path, command)
    case .model(.safetensors)? where ModelFile.isModelFile(at: error.file):
        if (try? ModelFile(contentsOf: error.file))?.head.locatesObjects == true {
            return "imprint detect runs the detector."
        }
        let hasBase = CommandLineArguments.options(of: command).contains("--base")
        return "imprint classify runs the model"
            + (hasBase ? "; --base \(shellQuoted(path)) starts training from it." : ".")
    default: return nil
    }
}

/// Returns the subcommand that helps if a file of another kind was named as a model.
private func hint(forWrongModel error: SafetensorsError) -> String? {
    switch error.problem {
    case .otherKind(.image), .otherKind(.otherImage): "If the command takes photos, name the model before them."
    case .otherKind(.model(.tensorFlowLite)): hint(toImport: .tensorFlowLite, "the face detector BlazeFace", error.path)
    case .otherKind(.model(let format)): hint(toImport: format, "it", error.path)
    case .headerTooLong where FileKind(contentsOf: URL(filePath: error.path))?.isSafetensors == true: nil
    // Core ML packages and PyTorch checkpoints are often in archives.
    case .headerTooLong, .otherKind(.zip), .otherKind(.gzip), .otherKind(.tar), .otherKind(.pickle):
        "imprint import converts ONNX, Core ML, Caffe and PyTorch models to model files."
    default: nil
    }
}

/// Returns the command that imports a model.
/// - Parameters:
///   - format: The format of the model.
///   - name: The name of the model in the sentence.
///   - path: The path of the model.
private func hint(toImport format: ModelFormat, _ name: String, _ path: String) -> String {
    var (options, end) = ("", "")
    switch format {
    case .onnx, .coreML: break
    case .caffe: options = " --prototxt deploy.prototxt"
    case .tensorFlowLite: options = " --detector blazeface"
    case .pyTorch, .legacyPyTorch, .safetensors:
        (options, end) = (" --architecture NAME", "; imprint import --help lists the architectures.")
    case .hdf5:
        return
            "Save a Caffe model as .caffemodel with Caffe, or export a Keras model to ONNX; imprint import converts both."
    case .gguf: return "Imprint cannot import this format. It imports ONNX, Core ML, Caffe and PyTorch models."
    }
    return "imprint import converts \(name): imprint import \(shellQuoted(path))\(options) --output model.imprint\(end)"
}

/// Returns the subcommand and the option that resume the run of a checkpoint.
private func resumingCommand(_ file: String) -> String {
    "imprint \(Checkpoint.isOfDetector(at: URL(filePath: file)) ? "train-detector" : "train") --resume"
}

/// Returns a sentence about the kind of a file that Imprint cannot import; nil if the kind is unknown, or if the import failed otherwise.
private func kindOfUnknownFormat(_ error: ImportError) -> String? {
    guard error.problem == .unknownFormat, let kind = FileKind(contentsOf: URL(filePath: error.path)),
        kind != .unknown
    else { return nil }
    return "It seems to be \(kind.name)."
}

/// Returns the option that helps after a failed import.
private func hint(for problem: ImportError.Problem) -> String? {
    switch problem {
    case .unsuitableModel(_, _, .prototxt?): "Leave out --prototxt."
    case .unsuitableModel(_, _, .architecture?): "Leave out --architecture."
    case .unsuitableModel(_, _, .isBGR?): "Leave out --bgr."
    case .unsuitableModel(_, _, .detector?): "Leave out --detector."
    case .unsuitableModel(_, _, .noDetector?):
        "\(DetectorKind.allCases.map { "--detector \($0.rawValue)" }.joined(separator: " or ")) imports a detector."
    case .missing(_, _, .prototxt?): "--prototxt names the file."
    case .missing(_, _, .architecture?): "--architecture sets it."
    case .missing(_, _, .architectures(let names)?), .unsuitableModel(_, _, .architectures(let names)?):
        "Use \(names.map { "--architecture \($0)" }.joined(separator: " or "))."
    case .missing(_, _, .labels?): "--labels sets the labels."
    case .unsuitableModel(_, _, .normalization?), .missing(_, _, .normalization?):
        "--mean and --scale set the input normalization."
    default: nil
    }
}

/// Whether an error of the library means wrong usage: an option that is out of its range or that the model does not support, an unknown name,
/// an output that must not be replaced, or options or files that do not match the run to resume.
func isWrongUsage(_ error: any Error) -> Bool {
    switch error {
    case ImprintError.invalidSetting, ImprintError.unfinishedCheckpoint, BaseModelError.notInstalled: true
    case ImprintError.missingMetric, ImprintError.notADetector: true
    case ImprintError.checkpointMismatch, ImprintError.checkpointOfOtherFiles, ImprintError.missingValidationPhotos,
        ImprintError.checkpointOfOtherPhotos, ImprintError.finishedWithOtherPhotos:
        true
    case CrossValidationError.otherSettings, CrossValidationError.otherInputs: true
    case DrawingError.foreignFolder, DrawingError.otherDrawing, DrawingError.noSuchRecipe, DrawingError.invalidCount:
        true
    case FleetError.unsupportedURL, ServeError.tooManyConnections: true
    case is PreparationError: true
    case let error as ImportError:
        switch error.problem {
        case .unsuitableModel(_, _, .prototxt?), .unsuitableModel(_, _, .architecture?),
            .unsuitableModel(_, _, .isBGR?):
            true
        default: false
        }
    case let error as ExportError: if case .notUpdatable = error.problem { true } else { false }
    case let error as HintedError: isWrongUsage(error.error)
    case let error as ProcessFailedError: error.advice.isWrongUsage
    case let error as LocatedError: isWrongUsage(error.error)
    case let error as ModelFileError: if case .notACheckpoint = error.problem { true } else { false }
    case BaseInstallationError.unknownName, BaseInstallationError.invalidName, BaseInstallationError.reservedName,
        BaseInstallationError.nameTaken, BaseInstallationError.licenseNotAccepted, BaseInstallationError.digestRequired,
        BaseInstallationError.invalidDigest, BaseInstallationError.unsupportedURL:
        true
    default: false
    }
}
