import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import TestSupport

/// The programs in docs/examples, built as a user builds them, once for all tests.
enum Examples {
    /// The folder of the package.
    static let package = packageFolder.appending(path: "docs/examples")
    /// The model that comes with them, which tells two circles from everything else.
    static let model = package.appending(path: "Sources/TypedModel/TwoCircles.imprint").path

    private static let build = Result { () throws -> URL in
        // A folder of its own: the one of these tests is locked while they run.
        let scratch = packageFolder.appending(path: ".build-examples")
        let result = try swift("build", "--package-path", package.path, "--scratch-path", scratch.path)
        guard result.status == 0 else { throw BuildFailure(output: result.output + result.errors) }
        return scratch.appending(path: "debug")
    }

    /// What the package manager said of a package that it could not build.
    struct BuildFailure: Error {
        let output: String
    }

    /// Where a program is.
    static func program(_ name: String) throws -> URL { try build.get().appending(path: name) }

    /// Runs a program.
    static func run(_ name: String, _ arguments: [String]) throws -> CommandOutput {
        try TestSupport.run(program(name), arguments)
    }

    /// Draws pictures as the model was trained on, none of which it has seen, and gives the folder that has TwoCircles/N.jpg and Other/N.jpg.
    static func draw(_ count: Int, in folder: URL) throws -> URL {
        let recipe = try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/two-circles.json"))
        for (place, label) in ["TwoCircles", "Other"].enumerated() {
            let pictures = folder.appending(path: label)
            try FileManager.default.createDirectory(at: pictures, withIntermediateDirectories: true)
            for index in 0..<count {
                try ImageFile.write(
                    recipe.draw(label: place, index: index, seed: 2), to: pictures.appending(path: "\(index).jpg"))
            }
        }
        return folder
    }
}

/// Runs the package manager, that of the tests.
func swift(_ arguments: String...) throws -> CommandOutput {
    try run(URL(filePath: "/usr/bin/env"), ["swift"] + arguments)
}

/// A model that was never trained, and with many labels is sure of none.
func makeUnsureModel(labels: [String]) throws -> ModelFile {
    let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 5), labels: labels,
        preprocessing: Preprocessing(width: 16, height: 16))
}
