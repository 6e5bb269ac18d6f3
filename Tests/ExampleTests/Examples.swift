import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import TestSupport

/// The programs in docs/examples, built once for all tests with the commands that a user runs.
enum Examples {
    /// The folder of the package docs/examples.
    static let package = packageFolder.appending(path: "docs/examples")
    /// The path of the model of the examples, a classifier with the labels TwoCircles and Other.
    static let model = package.appending(path: "Sources/TypedModel/TwoCircles.imprint").path

    private static let build = Result { () throws -> URL in
        // The build folder of the tests is locked while they run, so use another one.
        let scratch = packageFolder.appending(path: ".build-examples")
        let result = try swift("build", "--package-path", package.path, "--scratch-path", scratch.path)
        guard result.status == 0 else { throw BuildFailure(output: result.output + result.errors) }
        return scratch.appending(path: "debug")
    }

    /// The output of a failed build.
    struct BuildFailure: Error {
        let output: String
    }

    /// Returns the location of a program.
    static func program(_ name: String) throws -> URL { try build.get().appending(path: name) }

    /// Runs a program.
    static func run(_ name: String, _ arguments: [String]) throws -> CommandOutput {
        try TestSupport.run(program(name), arguments)
    }

    /// Draws images from the recipe of the model's training data, with another seed.
    /// - Returns: The folder, which contains TwoCircles/N.jpg and Other/N.jpg.
    static func draw(_ count: Int, in folder: URL) throws -> URL {
        let recipe = try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/two-circles.json"))
        for (labelIndex, label) in ["TwoCircles", "Other"].enumerated() {
            let labelFolder = folder.appending(path: label)
            try FileManager.default.createDirectory(at: labelFolder, withIntermediateDirectories: true)
            for index in 0..<count {
                try ImageFile.write(
                    recipe.draw(label: labelIndex, index: index, seed: 2),
                    to: labelFolder.appending(path: "\(index).jpg"))
            }
        }
        return folder
    }
}

/// Runs the Swift command of the PATH.
func swift(_ arguments: String...) throws -> CommandOutput {
    // As in Packaging/dependencies.sh: otherwise, SwiftPM often compiles all modules of a package again.
    try run(URL(filePath: "/usr/bin/env"), ["SWIFT_DETERMINISTIC_HASHING=1", "swift"] + arguments)
}

/// Creates an untrained model; with many labels, all of its confidences are low.
func makeUntrainedModel(labels: [String]) throws -> ModelFile {
    let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 5), labels: labels,
        preprocessing: Preprocessing(width: 16, height: 16))
}
