import Foundation
import Imprint
import ImprintImages
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

@Suite struct TrainingDataTests {
    private static func artwork(_ name: String) throws -> Artwork {
        try Artwork(contentsOf: packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-\(name).png"))
    }

    @Test("Photos alone are what a folder is to a trainer") func photos() throws {
        try withPictures(perLabel: 4) { folder in
            let photos = try ImageFolder(at: folder)
            #expect(TrainingData.photos(photos).artwork.isEmpty)
            let configuration = try quickTraining(epochs: 1)
            let short = try bytes(of: Trainer(folder: photos, configuration: configuration).train().weights)
            let long = try bytes(of: Trainer(data: .photos(photos), configuration: configuration).train().weights)
            #expect(short == long)
        }
    }

    @Test("Artwork and backgrounds add up") func addsUp() throws {
        try withPictures(["left"], perLabel: 1) { folder in
            let photos = try ImageFolder(at: folder, minimumClasses: 1)
            let (one, two) = (folder.appending(path: "1.jpg"), folder.appending(path: "2.jpg"))
            let data = TrainingData.photos(photos)
                .composited(artwork: ["a": [try Self.artwork("leaf")]], backgrounds: [one])
                .composited(
                    artwork: ["a": [try Self.artwork("crest")], "b": [try Self.artwork("crest")]], backgrounds: [two])
            #expect(data.photos.items == photos.items)
            #expect(
                data.artwork.mapValues { $0.map(\.name) } == [
                    "a": ["artwork-leaf.png", "artwork-crest.png"], "b": ["artwork-crest.png"],
                ])
            #expect(data.backgrounds == [one, two])
            let artwork = ["a": [try Self.artwork("leaf")]]
            #expect(TrainingData.photos(photos).composited(artwork: artwork).backgrounds == nil)
            #expect(TrainingData.photos(photos).composited(artwork: artwork, backgrounds: []).backgrounds == [])
        }
    }

    @Test("With artwork a trainer spots") func artwork() throws {
        try withPictures(perLabel: 1) { folder in
            let data = TrainingData.photos(try ImageFolder(at: folder)).composited(
                artwork: ["a": [try Self.artwork("leaf")]])
            let configuration = try quickTraining()
            let expected = ImprintError.notOneLabelWithoutMark(
                found: ["left", "right"], marks: ["a"], folder: folder.path)
            #expect(throws: expected) { _ = try Trainer(data: data, configuration: configuration).train() }
        }
    }
}
