import ArgumentParser
import Foundation
import Imprint
import Testing

@testable import imprint_cli

@Suite struct TrainingOptionsTests {
    @Test(
        "The options of a report's command give the configuration of its run",
        arguments: [
            "", "--epochs 3 --seed 9 --learning-rate auto --patience 4 --minutes 2.5 --average 0.99",
            "--validation 0.25 --random-split --network lenet --width 0.5 --input-size 40 --crop-and-scale scale-fit",
            "--validation photos --augment flip,noise --label-smoothing 0.1 --class-weights auto --no-calibration",
            "--batch-size 7 --precision float16 --memory 2GB",
        ])
    func arguments(typed: String) throws {
        func words(_ line: String) -> [String] { line.split(separator: " ").map(String.init) }
        let options = try TrainingOptions.parse(words(typed))
        let repeated = try TrainingOptions.parse(options.arguments)
        #expect(repeated.arguments == options.arguments)
        func described(_ options: TrainingOptions) throws -> String {
            var configuration = try options.configuration(threads: 1)
            // How much is kept in memory makes no difference to the result.
            configuration.memoryLimit = nil
            let words = configuration.augmentation.words
            // Sets are printed in any order.
            configuration.augmentation = .none
            return "\(configuration), \(words)"
        }
        #expect(try described(repeated) == described(options))
        if typed.contains("auto") { #expect(try described(options) != described(TrainingOptions.parse([]))) }
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
