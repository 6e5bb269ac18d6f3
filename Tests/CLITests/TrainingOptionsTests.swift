import ArgumentParser
import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

@testable import imprint_cli

@Suite struct TrainingOptionsTests {
    @Test(
        "Parsing the arguments that a report shows gives the configuration of its run",
        arguments: [
            "", "--epochs 3 --seed 9 --learning-rate auto --patience 4 --time-limit 150s --average 0.99",
            "--validation 0.25 --random-split --network lenet --width 0.5 --input-size 40 --crop-and-scale scale-fit",
            "--validation photos --augment flip,noise --label-smoothing 0.1 --class-weights auto --no-calibration",
            "--epochs 20 --batch-size 32 --augment none --learning-rate 0.02 --label-smoothing 0",
            "--batch-size 7 --precision float16 --memory 2GB --mixed-precision", "--base BASE",
            "--base BASE --unfreeze all --layer-decay 0.3",
            "--base BASE --unfreeze head-first --stage-epochs 3 --batch-statistics", "--base BASE --unfreeze gradual",
        ])
    func arguments(typed: String) throws {
        try withTemporaryFolder { folder in try expectSameConfiguration(typed, base: folder.appending(path: "base")) }
    }

    private func expectSameConfiguration(_ typed: String, base: URL) throws {
        let network = try Network.named("logonet", labels: 2, inputSize: 16, width: 0.125)
        try ModelFile(
            network: network, parameters: try Parameters(network, seed: 1), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16, height: 16)
        ).write(to: base)
        func split(_ line: String) -> [String] {
            line.split(separator: " ").map { $0 == "BASE" ? base.path : String($0) }
        }
        let options = try TrainingOptions.parse(split(typed))
        let repeated = try TrainingOptions.parse(options.arguments)
        #expect(repeated.arguments == options.arguments)
        func described(_ options: TrainingOptions) throws -> String {
            var configuration = try options.configuration(threads: 1)
            // The memory limit does not affect the result.
            configuration.memoryLimit = nil
            let augmentations = configuration.augmentation.names
            // The order of a printed set is random.
            configuration.augmentation = .none
            let fixed = configuration.fixedHyperparameters.map(\.rawValue).sorted()
            configuration.fixedHyperparameters = []
            var start = "from scratch"
            if case .base(let model, let layers) = configuration.start {
                start = "\(model.digest ?? ""), \(layers)"
                configuration.start = .network("lenet")
            }
            return "\(configuration), \(augmentations), \(fixed), \(start)"
        }
        #expect(try described(repeated) == described(options))
        if typed.contains("auto") || typed.contains("--base") {
            #expect(try described(options) != described(TrainingOptions.parse([])))
        }
    }

    @Test(
        "A recipe does not set hyperparameters whose options are given, also with their default values",
        arguments: [
            ("", []), ("--epochs 20", [.epochs]), ("--batch-size 32 --augment none", [.batchSize, .augmentation]),
            ("--learning-rate 0.02 --layer-decay 0.4", [.learningRate, .layerDecay]),
            (
                "--label-smoothing 0 --gradient-clipping 5 --average 0.9",
                [.labelSmoothing, .gradientClipping, .emaDecay]
            ),
        ] as [(String, Set<RecipeHyperparameter>)])
    func fixedHyperparameters(typed: String, expected: Set<RecipeHyperparameter>) throws {
        let options = try TrainingOptions.parse(typed.split(separator: " ").map(String.init))
        #expect(try options.configuration(threads: 1).fixedHyperparameters == expected)
    }

    @Test(
        "Training starts from the built-in base model unless a base model or a network option is given",
        arguments: [
            ("", FineTuning.TrainableLayers.all), ("--unfreeze head", .head),
            ("--epochs 3 --augment flip", .all), ("--network logonet", nil), ("--width 0.5", nil),
            ("--input-size 64", nil), ("--crop-and-scale scale-fit", nil),
        ] as [(String, FineTuning.TrainableLayers?)])
    func builtInBase(typed: String, layers: FineTuning.TrainableLayers?) throws {
        let options = try TrainingOptions.parse(typed.split(separator: " ").map(String.init))
        let configuration = try options.configuration(threads: 1)
        switch configuration.start {
        case .automatic: #expect(layers == .all)
        case .builtInBase, .pretrained: Issue.record("\(typed): no recipe was asked for")
        case .base(let base, let found):
            #expect(found == layers)
            #expect(try base.digest == ModelFile.builtInBase().digest)
        case .network: #expect(layers == nil)
        case .untrained: Issue.record("\(typed): no network of an app was asked for")
        }
    }

    @Test(
        "The automatic recipe gives the reason for the base model that comes with Imprint",
        arguments: [
            ("", "because a pretrained base model is not installed"), ("--base built-in", "as requested"),
            ("--base built-in --recipe auto", "as requested"), ("--recipe head", nil), ("--unfreeze all", nil),
        ])
    func reasonForBuiltInBase(typed: String, reason: String?) throws {
        let options = try TrainingOptions.parse(typed.split(separator: " ").map(String.init))
        #expect(options.baseOptions.reasonForBuiltInBase == reason)
    }

    @Test(
        "A cross-validation names its base model or network",
        arguments: [
            ("", "Base model: built-in, which comes with Imprint."),
            ("--base built-in --recipe head", "Base model: built-in, which comes with Imprint."),
            ("--base my/base.imprint", "Base model: my/base.imprint."),
            ("--width 0.5", "Network: logonet, trained from scratch."),
        ])
    func startingPoint(typed: String, expected: String) throws {
        let options = try TrainingOptions.parse(typed.split(separator: " ").map(String.init))
        #expect(try options.startingPoint() == expected)
    }

    @Test(
        "Arguments with special characters are quoted for the shell",
        arguments: [
            ("flip,noise", "flip,noise"), ("my photos", "'my photos'"), ("", "''"), ("it's", "'it'\\''s'"),
            ("$HOME", "'$HOME'"),
            ("Füße/ü.jpg", "Füße/ü.jpg"), ("a;b", "'a;b'"), ("'\u{301};b", "''\\''\u{301};b'"),
        ])
    func quoting(word: String, quoted: String) { #expect(shellQuoted(word) == quoted) }
}
