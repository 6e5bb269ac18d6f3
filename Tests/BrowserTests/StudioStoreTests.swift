import FlyingFox
import Foundation
import ImprintImages
import Testing

@testable import ImprintStudio

/// The stored photos and the responses of the studio, without a server.
@Suite("Stores of the studio") struct StudioStoreTests {
    private struct UnexpectedError: Error, CustomStringConvertible {
        var description: String { "the model has no labels. Train it again." }
    }

    @Test("Every error is a response with its message") func failures() async throws {
        let photo = URL(filePath: "/photos/a.jpg")
        let unreadable = ImageError.unreadable(file: photo, reason: "No such file or directory")
        let cases: [(error: any Error, status: Int, message: String)] = [
            (UnexpectedError(), 500, "The model has no labels. Train it again."),
            (RequestError("There is no photo.", .notFound), 404, "There is no photo."),
            (unreadable, 422, "\(unreadable)"),
        ]
        for (error, status, message) in cases {
            let response = HTTPResponse.failure(error)
            let bytes = try await response.bodyData
            #expect(response.statusCode.code == status)
            #expect(try JSONDecoder().decode([String: String].self, from: bytes) == ["error": message])
        }
    }
}
