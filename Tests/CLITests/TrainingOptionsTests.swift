import ArgumentParser
import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import imprint_cli

@Suite struct TrainingOptionsTests {
    @Test(
        "The options of a report's command give the configuration of its run",
        arguments: [
            "", "--epochs 3 --seed 9 --learning-rate auto --patience 4 --time-limit 150s --average 0.99",
            "--validation 0.25 --random-split --network lenet --width 0.5 --input-size 40 --crop-and-scale scale-fit",
            "--validation photos --augment flip,noise --label-smoothing 0.1 --class-weights auto --no-calibration",
            "--batch-size 7 --precision float16 --memory 2GB", "--base BASE",
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
        func words(_ line: String) -> [String] {
            line.split(separator: " ").map { $0 == "BASE" ? base.path : String($0) }
        }
        let options = try TrainingOptions.parse(words(typed))
        let repeated = try TrainingOptions.parse(options.arguments)
        #expect(repeated.arguments == options.arguments)
        func described(_ options: TrainingOptions) throws -> String {
            var configuration = try options.configuration(threads: 1)
            // How much is kept in memory makes no difference to the result.
            configuration.memoryLimit = nil
            let words = configuration.augmentation.names
            // Sets are printed in any order.
            configuration.augmentation = .none
            var start = "from scratch"
            if case .base(let file, let trains) = configuration.start {
                start = "\(file.digest ?? ""), \(trains)"
                configuration.start = .network("lenet")
            }
            return "\(configuration), \(words), \(start)"
        }
        #expect(try described(repeated) == described(options))
        if typed.contains("auto") || typed.contains("--base") {
            #expect(try described(options) != described(TrainingOptions.parse([])))
        }
    }

    @Test(
        "Training begins with the base that comes with Imprint, unless a model or a network is given",
        arguments: [
            ("", FineTuning.Trains.all), ("--unfreeze head", .head),
            ("--epochs 3 --augment flip", .all), ("--network logonet", nil), ("--width 0.5", nil),
            ("--input-size 64", nil), ("--crop-and-scale scale-fit", nil),
        ] as [(String, FineTuning.Trains?)])
    func shippedBase(typed: String, trains: FineTuning.Trains?) throws {
        let options = try TrainingOptions.parse(typed.split(separator: " ").map(String.init))
        let configuration = try options.configuration(threads: 1)
        switch configuration.start {
        case .builtInBase: #expect(trains == .all)
        case .base(let base, let found):
            #expect(found == trains)
            #expect(try base.digest == ModelFile.shippedBase().digest)
        case .network: #expect(trains == nil)
        }
    }

    @Test(
        "Words that a shell would not take as they are get quoted",
        arguments: [
            ("flip,noise", "flip,noise"), ("my photos", "'my photos'"), ("", "''"), ("it's", "'it'\\''s'"),
            ("$HOME", "'$HOME'"),
            ("Füße/ü.jpg", "Füße/ü.jpg"), ("a;b", "'a;b'"),
        ])
    func quoting(word: String, quoted: String) { #expect(shellQuoted(word) == quoted) }
}
