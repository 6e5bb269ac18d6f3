import Foundation
import Imprint
import ImprintModel
import TestSupport
import Testing

@testable import ImprintTraining

@Suite("Folds that evaluate the head of a recipe") struct RecipeFoldsTests {
    @Test("Groups are never split, and each fold has photos of each label") func groups() {
        let labels = (0..<60).map { [$0 / 30] }
        let groups = (0..<60).map { $0 / 3 }
        let folds = RecipeFolds.folds(labels: labels, groups: groups, seed: 0)
        #expect(folds.count == 5)
        #expect(folds.joined().sorted() == Array(0..<60))
        for fold in folds {
            #expect(Set(fold.flatMap { labels[$0] }) == [0, 1])
            let others = Set(0..<60).subtracting(fold)
            #expect(Set(fold.map { groups[$0] }).isDisjoint(with: others.map { groups[$0] }))
        }
        #expect(folds == RecipeFolds.folds(labels: labels, groups: groups, seed: 0))
    }

    @Test("A group with all photos of a label is not held out; with one group per label, no photo is")
    func singleGroups() {
        let folds = RecipeFolds.folds(labels: [[0], [0], [0], [1], [1]], groups: [0, 1, 2, 3, 3], seed: 0)
        #expect(folds.joined().sorted() == [0, 1, 2])
        #expect(RecipeFolds.folds(labels: [[0], [0], [1], [1]], groups: [0, 0, 1, 1], seed: 0).isEmpty)
        #expect(RecipeFolds.folds(labels: [[0], [1]], groups: [0, 1], seed: 0).isEmpty)
    }

    @Test("Photos without labels are held out, and so are photos whose labels other groups have") func severalLabels() {
        let folds = RecipeFolds.folds(labels: [[0, 1], [0], [], [0]], groups: [0, 1, 2, 3], seed: 0)
        #expect(folds.joined().sorted() == [1, 2, 3])
        #expect(RecipeFolds.folds(labels: [[0], [1], []], groups: [0, 1, 2], seed: 0).isEmpty)
    }

    @Test("The head is not evaluated on copies of its training photos, unless the dataset split is random")
    func copies() throws {
        let base = try withImages(["down", "up"], perLabel: 8, seed: 1) {
            try train($0, quickTraining(epochs: 2) { $0.inputSize = 32 })
        }
        try withImages(perLabel: 6) { folder in
            let right = folder.appending(path: "right")
            for index in 1..<6 {
                let copy = right.appending(path: "\(index).png")
                try FileManager.default.removeItem(at: copy)
                try FileManager.default.copyItem(at: right.appending(path: "0.png"), to: copy)
            }
            for (keepsGroupsTogether, heldOut) in [(true, 6), (false, 12)] {
                var configuration = ClassifierConfiguration()
                configuration.start = .pretrained(base, recipe: .head)
                configuration.threads = 1
                configuration.hyperparameters.keepsGroupsTogether = keepsGroupsTogether
                var evidence: RecipeDecision.Evidence?
                _ = try train(
                    folder, configuration,
                    onEvent: { if case .started(let start) = $0 { evidence = start.decision?.evidence } })
                #expect(evidence?.heldOutPhotos == heldOut)
            }
        }
    }
}
