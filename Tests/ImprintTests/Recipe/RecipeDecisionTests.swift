import ImprintImages
import ImprintTraining
import Testing

@Suite("Recipe decision") struct RecipeDecisionTests {
    private func decision(
        _ recipe: ClassifierRecipe = .automatic, photos: Int = 1000, accuracy: Double = 0.9, mirrored: Double = 0.9,
        spread: Double? = 1, secondsLeft: Double? = nil, epochs: Int? = nil, augmentation: Augmentation? = nil,
        given: Set<RecipeHyperparameter> = [], isMultiLabel: Bool = false, heldOut: Int = 50
    ) -> RecipeDecision {
        RecipeDecision(
            recipe,
            RecipeDecision.Evidence(
                trainingPhotos: photos, heldOutPhotos: heldOut, headAccuracy: accuracy, mirroredAccuracy: mirrored,
                evidenceSpread: spread),
            secondsPerEpoch: 20, secondsLeft: secondsLeft, epochs: epochs, augmentation: augmentation,
            given: given, isMultiLabel: isMultiLabel)
    }

    @Test(
        "The recipe follows the table: the number of photos, the accuracy of the head, and the time limit",
        arguments: [
            (1000, 0.9, nil, ClassifierRecipe.fineTuning), (99, 0.5, nil, .head), (100, 0.5, nil, .fineTuning),
            (1000, 0.99, nil, .head), (1000, 0.989, nil, .fineTuning), (1000, 0.9, 19, .head),
            (1000, 0.9, 21, .fineTuning), (1000, 0.9, -3, .head),
        ] as [(Int, Double, Double?, ClassifierRecipe)])
    func table(photos: Int, accuracy: Double, secondsLeft: Double?, expected: ClassifierRecipe) {
        let decision = decision(photos: photos, accuracy: accuracy, secondsLeft: secondsLeft)
        #expect(decision.recipe == expected)
        #expect(decision.reason.hasPrefix("because "))
    }

    @Test(
        "A requested recipe is used for any measurements",
        arguments: [ClassifierRecipe.head, .fineTuning])
    func forced(recipe: ClassifierRecipe) {
        #expect(decision(recipe, photos: 3, accuracy: 1).recipe == recipe)
        #expect(decision(recipe, photos: 5000, accuracy: 0).recipe == recipe)
    }

    @Test(
        "Photos are mirrored unless the head fails on mirrored photos",
        arguments: [(0.9, true), (0.81, true), (0.5, false)])
    func mirroring(mirrored: Double, flips: Bool) {
        let decision = decision(mirrored: mirrored)
        #expect(decision.augmentation.kinds.contains(.flip) == flips)
        #expect(decision.description.contains("not mirrored") == !flips)
    }

    @Test(
        "Fewer photos take more epochs, and a time limit takes away those that do not fit",
        arguments: [(100, nil, 8), (700, nil, 5), (1000, nil, 4), (100_000, nil, 4), (100, 65, 3), (100, 1e300, 8)]
            as [(Int, Double?, Int)])
    func epochs(photos: Int, secondsLeft: Double?, expected: Int) {
        #expect(decision(photos: photos, secondsLeft: secondsLeft).epochs == expected)
    }

    @Test("The description has the number of epochs and the data augmentation that were asked for")
    func given() {
        let tuned = decision(
            .fineTuning, mirrored: 0.1, secondsLeft: 65, epochs: 12, augmentation: Augmentation([.flip]))
        #expect(tuned.epochs == 12 && tuned.augmentation == Augmentation([.flip]))
        #expect(tuned.description.hasPrefix("fine-tune all layers for 12 epochs, as requested"))
        #expect(!tuned.description.contains("not mirrored"))
        let head = decision(
            photos: 9, epochs: 3, augmentation: Augmentation([.flip]), given: [.epochs, .batchSize, .augmentation])
        #expect(head.epochs == 1 && head.augmentation == .none)
        #expect(head.description.hasSuffix("ignores: epochs, augmentation"))
        #expect(!decision(photos: 9).description.contains("ignores"))
    }

    @Test("With one photo per label, the recipe is head, and no accuracy is reported") func onePhotoPerLabel() {
        let decision = decision(photos: 500, accuracy: 0, mirrored: 0, spread: 0.1, heldOut: 0)
        #expect(decision.recipe == .head)
        #expect(
            decision.reason
                == "because each label has only one photo or one group of near-duplicates, so no photo can be held out to measure the head"
        )
        #expect(decision.evidence?.showsSmallObjects == false)
    }

    @Test("For several labels per photo, the accuracy is the micro-averaged F1 score")
    func multiLabel() {
        #expect(
            decision(isMultiLabel: true).reason.contains(
                "the micro-F1 of a new head on the frozen base model is 90.0 % on 50 held-out photos"))
        #expect(decision().reason.contains("right on 90.0 % of 50 held-out photos"))
    }

    @Test(
        "Small objects are reported if the evidence is concentrated and the accuracy is low",
        arguments: [(0.6, 0.75, true), (0.6, 0.95, false), (1.1, 0.75, false), (nil, 0.75, false)]
            as [(Double?, Double, Bool)])
    func smallObjects(spread: Double?, accuracy: Double, expected: Bool) throws {
        #expect(try #require(decision(accuracy: accuracy, spread: spread).evidence).showsSmallObjects == expected)
    }
}
