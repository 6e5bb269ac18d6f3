import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Time of a recipe") struct RecipeTimeTests {
    @Test("The time of the measurements counts towards the time limit, and a checkpoint contains it")
    func measurements() throws {
        let base = try withImages(["down", "up"], perLabel: 8, seed: 1) {
            try train($0, quickTraining(epochs: 2) { $0.inputSize = 32 })
        }
        try withImages(perLabel: 8) { folder in
            var configuration = ClassifierConfiguration()
            configuration.start = .pretrained(base, recipe: .fineTuning)
            configuration.threads = 1
            configuration.epochs = 1
            configuration.timeLimit = .seconds(1000)
            let photos = try ImageFolder(at: folder)
            let recipe = try #require(
                try ChosenRecipe(photos, configuration, nil, onEvent: { _ in }, shouldStop: { false }))
            #expect(recipe.secondsOfProbe > 0)
            var task = try ClassifierTask(photos: photos, configuration: recipe.configuration, recipe: recipe)
            _ = try task.readPhotos(earlier: nil, onEvent: { _ in }, checkContinues: {})
            let (objective, options) = try task.makeObjective(onScan: { _, _ in })
            #expect(options.timeLimit == .seconds(1000))
            let state = try TrainingLoop(objective, options: options).state()
            #expect(state.progress.seconds >= recipe.secondsOfProbe)
        }
    }
}
