import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

@Suite("The base that comes with Imprint") struct ShippedBaseTests {
    @Test("It is a LogoNet of at most 4 MB that tells its marks apart in pictures that it was not trained on")
    func knowsMarks()
        throws
    {
        let base = try ModelFile.shippedBase()
        #expect(base.network.name == "logonet" && base.precision == .float16)
        #expect(base.preprocessing == Preprocessing(width: 96, height: 96))
        let file = packageFolder.appending(path: "Sources/CImprintBase/marks.imprint")
        #expect(try Data(contentsOf: file).count <= 4_000_000)
        #expect(try ModelFile(contentsOf: file).digest == base.digest)

        let recipe = try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/marks.json"))
        #expect(base.labels == recipe.labels.map(\.name))
        let classifier = try ImageClassifier(base)
        let right = try recipe.labels.indices.count { label in
            let image = recipe.draw(label: label, index: 0, seed: 2)
            return try classifier.classify(image)[0].label == recipe.labels[label].name
        }
        #expect(right > 102, "of 120")
    }

    @Test("A model that began with it says so, and its report too") func recipe() throws {
        try withPictures(perLabel: 4) { folder in
            let base = try ModelFile.shippedBase()
            var recipe: TrainingRecipe?
            let weights = try train(
                folder, quickTraining(epochs: 1) { $0.start = .base(base, trains: .all) },
                onEvent: { if case .started(let start) = $0 { recipe = start.recipe } })
            #expect(recipe == .shippedBase)
            #expect(weights.base == base.digest)
            #expect(Report(weights).html.contains(TrainingRecipe.shippedBase.summary))
        }
    }
}
