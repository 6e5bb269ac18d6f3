import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

@Suite("The base model that comes with Imprint") struct BuiltInBaseTests {
    @Test("It is a LogoNet of at most 4 MB that classifies drawn logos that it was not trained on")
    func accuracy() throws {
        let base = try ModelFile.builtInBase()
        #expect(base.network.name == "logonet" && base.storagePrecision == .float16)
        #expect(base.preprocessing == Preprocessing(width: 96, height: 96))
        // docs/explanation/base.md has the command, which leaves them out.
        #expect(base.rehearsal == nil)
        let file = packageFolder.appending(path: "Sources/CImprintBase/marks.imprint")
        #expect(try Data(contentsOf: file).count <= 4_000_000)
        #expect(try ModelFile(contentsOf: file).digest == base.digest)

        let recipe = try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/marks.json"))
        #expect(base.labels == recipe.labels.map(\.name))
        let classifier = try ImageClassifier(base)
        let correct = try recipe.labels.indices.count { label in
            let image = recipe.draw(label: label, index: 0, seed: 2)
            return try classifier.classify(image)[0].label == recipe.labels[label].name
        }
        #expect(correct > 102, "of 120")
    }

    @Test("Fine-tuning it records the base's digest, and the report names it") func recipe() throws {
        try withImages(perLabel: 4) { folder in
            let base = try ModelFile.builtInBase()
            var recipe: TrainingKind?
            let model = try train(
                folder, quickTraining(epochs: 1) { $0.start = .base(base, trainableLayers: .all) },
                onEvent: { if case .started(let start) = $0 { recipe = start.kind } })
            #expect(recipe == .builtInBase)
            #expect(model.baseDigest == base.digest)
            #expect(Report(model).html.contains(TrainingKind.builtInBase.summary))
        }
    }
}
