import ArgumentParser
import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintStore
import ImprintTraining
import TestSupport
import Testing

@testable import imprint_cli

/// The hints about options after errors of the library.
@Suite struct ErrorHintTests {
    private static func mismatch(_ setting: String) -> ImprintError {
        .checkpointMismatch(file: "run/checkpoint.safetensors", setting: setting, found: "1", expected: "2")
    }

    @Test(
        "An error of training or prediction names the option",
        arguments: [
            (.invalidSetting(name: "epochs", found: "0", expected: "1 to 100000"), nil),
            (
                .missingMetric("threshold", labels: ["Ring"], reason: .addedByPersonalization),
                "--threshold 0.5 requires a confidence of at least 0.5 for all labels."
            ),
            (
                .missingMetric("precision–recall curve", labels: ["Ring"], reason: .noTrainingRecord),
                "Leave out --minimum-precision and --minimum-recall."
            ),
            (
                .unfinishedCheckpoint(file: "run/checkpoint.safetensors", progress: "epoch 1 of 2"),
                "imprint train --resume continues the run."
            ),
            (
                .stoppedTooEarly(checkpoint: "run/checkpoint.safetensors"),
                "imprint train --resume continues the run."
            ),
            (.stoppedTooEarly(checkpoint: nil), "--checkpoint saves a run, so that --resume can continue it."),
            (
                .checkpointOfOtherPhotos(file: "run/checkpoint.safetensors", kept: 3, of: 8),
                "Without --resume and with another folder for --checkpoint, a new run trains on these photos."
            ),
            (
                .finishedWithOtherPhotos(file: "run/checkpoint.safetensors", change: "1 new", canTrainLonger: true),
                "Without --resume and with another folder for --checkpoint, a new run trains on these photos."
            ),
            (.noUsablePhotoInTime(read: 16, of: 60, reason: nil), "--time-limit sets the limit."),
            (mismatch("fine tuning.layer decay"), "The setting belongs to --layer-decay."),
            (mismatch("keeps groups together"), "The setting belongs to --random-split."),
            (mismatch("EMA decay"), "The setting belongs to --average."),
            (mismatch("batch size"), nil),
        ] as [(ImprintError, String?)])
    func training(error: ImprintError, expected: String?) { #expect(hint(for: error) == expected) }

    @Test(
        "An error about a limit of a download advises another program, and does not name Swift properties",
        arguments: [
            .tooLarge(url: "https://a.example/m", byteCount: nil, limit: 1 << 30),
            .tooSlow(url: "https://a.example/m", byteCount: 1, interval: .seconds(30), expected: 30 << 10),
            .timedOut(url: "https://a.example/m", limit: .seconds(3600)),
        ] as [StoreError])
    func downloadLimits(error: StoreError) {
        #expect(!error.description.contains("DownloadLimits"))
        #expect(hint(for: error)?.hasSuffix("imprint models install FILE installs it.") == true)
    }

    @Test("A hint about --memory or --base appears only for a subcommand with the option") func missingOptions() {
        let memory = ImprintError.featuresExceedMemoryLimit(byteCount: 2048, limit: 1024)
        let head = ImprintError.noHead(network: "n")
        let commands: [(any ParsableCommand.Type, String, String)] = [
            (PersonalizeCommand.self, "--memory sets the limit.", "none"),
            (JoinCommand.self, "--memory sets the limit.", "none"),
            (TrainCommand.self, "--memory sets the limit.", "--base"),
            (MergeCommand.self, "none", "none"), (ClassifyCommand.self, "none", "none"),
        ]
        for (command, memoryHint, headHint) in commands {
            #expect((hint(for: memory, in: command) ?? "none") == memoryHint, "\(command)")
            #expect((hint(for: head, in: command) ?? "none").hasPrefix(headHint), "\(command)")
        }
        #expect(hint(for: head)?.hasPrefix("--base adds a head") == true)
    }

    @Test(
        "An error about a checkpoint is wrong usage if options or files do not match it, not if it cannot be used",
        arguments: [
            (mismatch("batch size"), true),
            (ImprintError.checkpointOfOtherFiles(file: "run/checkpoint.safetensors", input: "artwork"), true),
            (ImprintError.missingValidationPhotos(count: 4), true),
            (ImprintError.checkpointOfOtherPhotos(file: "run/checkpoint.safetensors", kept: 3, of: 8), true),
            (
                ImprintError.finishedWithOtherPhotos(
                    file: "run/checkpoint.safetensors", change: "1 new", canTrainLonger: false), true
            ),
            (ImprintError.unfinishedCheckpoint(file: "run/checkpoint.safetensors", progress: "epoch 1 of 2"), true),
            (ModelFileError(path: "run/checkpoint.safetensors", problem: .notACheckpoint(found: "text")), true),
            (CrossValidationError.otherSettings(folder: "folds", setting: "seed", found: "1", expected: "2"), true),
            (CrossValidationError.otherInputs(folder: "folds", inputs: ["photos"]), true),
            (ImprintError.checkpointInUse(folder: "run"), false),
            (ImprintError.unusableCheckpoint(reason: "run/checkpoint.safetensors: the file is empty."), false),
            (CrossValidationError.folderInUse(folder: "folds"), false),
        ] as [(any Error, Bool)])
    func usage(error: any Error, expected: Bool) { #expect(isWrongUsage(error) == expected) }

    @Test(
        "A hint about a checkpoint names the subcommand of its kind of model",
        arguments: [(["backgrounds": "drawn patterns"], "train-detector"), (["batch size": "8"], "train")])
    func checkpoints(settings: [String: String], subcommand: String) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "checkpoint.safetensors")
            let text = String(decoding: try JSONEncoder().encode(settings), as: UTF8.self)
            try Safetensors.write([], to: file) { _ in [Checkpoint.formatKey: "3", "imprint.settings": text] }
            let command = "imprint \(subcommand) --resume"
            let error = try #require(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(hint(for: error) == "\(command) finishes the run and writes a model.")
            let list = try #require(throws: LabelListError.self) { try labelledPhotos(at: file, minimumLabels: 2) }
            #expect(list.problem == .otherKind(found: "the checkpoint of a training run"))
            #expect(
                hint(for: list, in: TrainCommand.self)
                    == "\(command) continues the run; --checkpoint names the folder of the checkpoint.")
            for error in [
                ImprintError.unfinishedCheckpoint(file: file.path, progress: "phase 1 of 2"),
                .stoppedTooEarly(checkpoint: file.path),
                .checkpointMismatch(file: file.path, setting: "kind of model", found: "", expected: ""),
            ] {
                #expect(hint(for: error) == "\(command) continues the run.")
            }
        }
    }

    @Test(
        "An error of importing a model names the option",
        arguments: [
            (.unsuitableModel(found: "an ONNX model", advice: "", setting: .prototxt), "Leave out --prototxt."),
            (.unsuitableModel(found: "a Caffe model", advice: "", setting: .isBGR), "Leave out --bgr."),
            (.unsuitableModel(found: "an ONNX model", advice: "", setting: .architecture), "Leave out --architecture."),
            (.unsuitableModel(found: "an empty pipeline", advice: ""), nil),
            (.missing(item: "architecture", advice: "", setting: .prototxt), "--prototxt names the file."),
            (.missing(item: "architecture", advice: "", setting: .architecture), "--architecture sets it."),
            (
                .missing(item: "architecture", advice: "", setting: .architectures(["resnet-18"])),
                "Use --architecture resnet-18."
            ),
            (
                .unsuitableModel(found: "a checkpoint", advice: "", setting: .architectures(["a", "tf-a"])),
                "Use --architecture a or --architecture tf-a."
            ),
            (.missing(item: "matching labels", advice: "", setting: .labels), "--labels sets the labels."),
            (
                .missing(item: "valid input normalization", advice: "", setting: .normalization),
                "--mean and --scale set the input normalization."
            ),
        ] as [(ImportError.Problem, String?)])
    func imports(problem: ImportError.Problem, expected: String?) {
        #expect(hint(for: ImportError(path: "model", problem: problem)) == expected)
    }

    @Test(
        "A file that cannot be imported has a hint that states its kind",
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE0, 0, 0x10, 0x4A, 0x46], "It seems to be a JPEG image."),
            (Array("photo,label\n".utf8), "It seems to be text."), ([UInt8](repeating: 254, count: 8), nil),
        ] as [([UInt8], String?)])
    func unknownFormats(content: [UInt8], expected: String?) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "model")
            try Data(content).write(to: file)
            let error = try #require(throws: ImportError.self) { try ModelImporter().read(file) }
            #expect(hint(for: error) == expected, "\(error)")
        }
    }

    @Test(
        "A wrong file where a model is expected has a hint that fits its kind",
        arguments: [
            ("{\"event\": \"finished\"}", nil), ("<!DOCTYPE html><html>", nil), ("photo,label\n", nil),
            (
                "PK\u{3}\u{4} an archive",
                "imprint import converts ONNX, Core ML, Caffe and PyTorch models to model files."
            ),
            (
                "GGUF\u{3}\0\0\0",
                "Imprint cannot import this format. It imports ONNX, Core ML, Caffe and PyTorch models."
            ),
            (
                " \0\0\0\0\0\0\0{\"__metadata__\":{\"format\":\"pt\"}}",
                "imprint import converts a PyTorch checkpoint: imprint import FILE --architecture NAME --output model.imprint; imprint "
                    + "import --help lists the architectures."
            ),
            (
                "\u{1C}\0\0\0TFL3",
                "imprint import converts the face detector BlazeFace: imprint import FILE --detector blazeface --output model.imprint"
            ),
            // A damaged length of the header.
            ("\0\0\0\u{10}\0\0\0\0{\"a\":{}}", nil),
            (")\0\0\0\0\0\0\0{\"__metadata__\":{\"imprint.features\":\"1\"}}", nil),
        ] as [(String, String?)])
    func wrongModels(content: String, expected: String?) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try Data(content.utf8).write(to: file)
            let error = try #require(throws: (any Error).self) { try ModelFile(contentsOf: file) }
            #expect(hint(for: error) == expected?.replacing("FILE", with: shellQuoted(file.path)), "\(error)")
        }
    }

    @Test(
        "A personalization where a model is expected has a hint about an option of the subcommand, or about imprint merge"
    )
    func personalizations() {
        let error = ModelFileError(path: "me.imprint", problem: .personalization)
        let merge = "imprint merge MODEL me.imprint --output merged.imprint"
        let option = "this file with --personalization"
        let commands: [(any ParsableCommand.Type, String)] = [
            (ClassifyCommand.self, option), (DetectCommand.self, option), (EvaluateCommand.self, option),
            (ServeCommand.self, option), (StudioCommand.self, option), (ExportCommand.self, merge),
            (QuantizeCommand.self, merge), (CompareCommand.self, merge), (TrainCommand.self, merge),
            (MergeCommand.self, merge),
        ]
        for (command, part) in commands {
            for error in [error, LocatedError(location: "--base", error: error)] as [any Error] {
                #expect(hint(for: error, in: command)?.contains(part) == true, "\(command)")
            }
        }
    }

    @Test("A personalization in the place of labelled photos is named, with a hint") func personalizationAsPhotos()
        throws
    {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "me.imprint")
            try Safetensors.write([], to: file) { _ in ["imprint.base": "0", "imprint.columns": "[]"] }
            let error = try #require(throws: LabelListError.self) { try labelledPhotos(at: file, minimumLabels: 2) }
            #expect(error.problem == .otherKind(found: "a personalization"))
            #expect(hint(for: error, in: TrainCommand.self)?.contains("imprint merge MODEL") == true)
            #expect(hint(for: error, in: EvaluateCommand.self)?.contains("--personalization") == true)
        }
    }

    @Test("An error of another process keeps the hint and the exit code") func otherProcesses() {
        let error = ProcessFailedError(
            rank: 1, reason: "epochs is 0", advice: ErrorAdvice(hint: "Raise it.", isWrongUsage: true))
        #expect(hint(for: error) == "Raise it." && isWrongUsage(error))
        let failure = ProcessFailedError(rank: 1, reason: "the disk is full")
        #expect(hint(for: failure) == nil && !isWrongUsage(failure))
    }

    @Test("Settings that differ between processes have a hint that names the options with other names")
    func differentProcesses() {
        func error(_ settings: String...) -> ProcessMismatchError {
            ProcessMismatchError(
                rank: 1,
                differences: settings.map { ProcessMismatchError.Difference(property: $0, found: "1", expected: "2") })
        }
        #expect(hint(for: error("batch size")) == nil)
        #expect(
            hint(for: error("EMA decay", "batch size", "augmentation"))
                == "The options of these settings: --average; --augment.")
    }

    @Test("A model where labelled photos are expected has a hint about what to do with it") func models() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try brightnessModel(labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2)).write(to: file)
            let error = try #require(throws: LabelListError.self) { try labelledPhotos(at: file, minimumLabels: 2) }
            #expect(
                hint(for: error, in: TrainCommand.self)
                    == "imprint classify runs the model; --base \(file.path) starts training from it.")
            #expect(hint(for: error, in: AuditCommand.self) == "imprint classify runs the model.")
        }
    }

    @Test("Boxes where a list of photos is expected have a hint that names --annotations") func boxes() {
        let file = URL(filePath: "boxes.json")
        #expect(
            hint(for: LabelListError(file: file, problem: .hasBoxes(format: "COCO")))?.contains("--annotations") == true
        )
        #expect(hint(for: LabelListError(file: file, problem: .noPhotos)) == nil)
        #expect(hint(for: ImageError.hasBoxes(folder: file, found: "data.yaml"))?.contains("--annotations") == true)
    }

    @Test("The folders of a dataset split have a hint that names --validation if the subcommand has it") func splits() {
        func error(_ splits: [String]) -> ImageError {
            .splitFolders(folder: URL(filePath: "/my data"), splits: splits, labels: ["A"])
        }
        let splits = ["test", "train", "valid"]
        for command in [TrainCommand.self, AuditCommand.self] as [any ParsableCommand.Type] {
            #expect(
                hint(for: error(splits), in: command)
                    == "Name the folders with '/my data/train' --validation '/my data/valid'.")
            #expect(hint(for: error(["test", "train"]), in: command) == nil)
        }
        #expect(
            hint(for: error(["train/train", "valid/photos"]), in: TrainCommand.self)
                == "Name the folders with '/my data/train/train' --validation '/my data/valid/photos'.")
        #expect(hint(for: error(splits), in: PrepareCommand.self) == nil)
        // The photos must first be sorted by label.
        let unsorted = ImageError.splitFolders(folder: URL(filePath: "/my data"), splits: splits, labels: [])
        #expect(hint(for: unsorted, in: TrainCommand.self) == nil)
    }

    /// The start of a ZIP archive from `torch.save`.
    private static let archive: [UInt8] =
        Array("PK\u{3}\u{4}\u{14}".utf8) + [UInt8](repeating: 0, count: 21)
        + Array("\u{10}\0\0\0archive/data.pkl".utf8)

    @Test(
        "A model of another program where a model is expected has the command that imports it",
        arguments: [
            (onnxStart, "an ONNX model", ""),
            ([8, 4, 0x12, 0, 0x18, 0, 0x20, 0, 0xC2, 0x0C, 0], "a Core ML model", ""),
            (Array("\n\u{1}a\u{12}\u{3}abc".utf8), "a Caffe model", "--prototxt deploy.prototxt "),
            (archive, "a PyTorch checkpoint", "--architecture NAME "),
        ] as [([UInt8], String, String)])
    func otherModels(content: [UInt8], kind: String, options: String) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "other model")
            try Data(content).write(to: file)
            let error = try #require(throws: (any Error).self) { try ModelFile(contentsOf: file) }
            #expect("\(error)".contains("it seems to be \(kind)."))
            let command = "imprint import '\(file.path)' \(options)--output model.imprint"
            #expect(hint(for: error)?.hasPrefix("imprint import converts it: \(command)") == true)
        }
    }

    @Test("An HDF5 file, which Caffe or Keras may have written, has a hint for both") func hdf5() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "model.h5")
            try Data([0x89] + Array("HDF\r\n\u{1A}\n".utf8)).write(to: file)
            let error = try #require(throws: SafetensorsError.self) { try ModelFile(contentsOf: file) }
            #expect("\(error)".contains("it seems to be an HDF5 file (Keras or Caffe)."))
            #expect(
                hint(for: error)
                    == "Save a Caffe model as .caffemodel with Caffe, or export a Keras model to ONNX; imprint import converts both."
            )
        }
    }

    @Test(
        "A wrong file where a personalization is expected has a hint that names imprint personalize",
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE0, 0, 0x10, 0x4A, 0x46], "--artwork LABEL='"),
            ([8, 7, 0x12, 2, 97, 97, 97, 97, 97], nil),
        ] as [([UInt8], String?)])
    func wrongPersonalizations(content: [UInt8], expected: String?) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "a logo.png")
            try Data(content).write(to: file)
            let error = try #require(throws: (any Error).self) { try namedPersonalization(file.path) }
            let text = try #require(hint(for: error))
            #expect(text.hasPrefix("imprint personalize writes a personalization."))
            #expect(expected.map { text.contains($0) } ?? !text.contains("--artwork"), "\(text)")
        }
    }
}
