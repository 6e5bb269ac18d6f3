internal import FlyingFox
package import Foundation
package import Imprint
internal import ImprintCore
internal import ImprintImages
package import ImprintLive
internal import ImprintModel
internal import ImprintNetwork

/// A page on this machine that looks through the camera, shows what a model sees, and teaches it.
///
/// It listens on 127.0.0.1 alone, and is open to browsers that are given `url` with its token, until `stop()` and for as long as somebody
/// holds it. Photos stay in memory; see docs/studio.md.
package final class Studio: Sendable {
    /// The port that is tried first where none is asked for; the next that is free is taken if it is in use.
    package static let usualPort = 8094

    /// Where the page is, with the token that lets in.
    package let url: URL
    private let server: LocalServer
    private let access: Access
    let teacher: Teacher
    private let name: String?
    /// Identifies this run in requests and answers, so that a page of an earlier studio at the same address notices.
    private let run = UUID().uuidString

    /// Starts to serve.
    /// - Parameters:
    ///   - classifier: The model to begin with; if nil, the first one is trained in the page.
    ///   - name: What the page calls it.
    ///   - port: The port, 1…65,535; the usual or the next free one if nil.
    ///   - threads: How many threads learn; one per core if nil.
    /// - Throws: `LocalServerError.noPort` if the port cannot be had.
    package init(
        _ classifier: ImageClassifier?, name: String? = nil, port: Int? = nil, threads: Int? = nil
    ) async throws {
        removeStaleFolders()
        server = try await LocalServer(port: port, usualPort: Self.usualPort)
        access = Access(port: server.url.port ?? 80)
        teacher = Teacher(classifier, threads: threads ?? Processors.coreCount)
        self.name = name
        url = server.url.appending(queryItems: [URLQueryItem(name: "token", value: access.token)])
        await server.serve(bodyLimit: Self.photoLimit, gate: { [access] in access.gate($0) }) {
            [weak self] request, body in
            guard let self else { return .failure(.serviceUnavailable, "The studio has ended.") }
            var response = try await answerOrFailure(request, body)
            response.headers[Self.runHeader] = run
            return response
        }
    }

    private static let runHeader = HTTPHeader("Imprint-Run")

    private func answerOrFailure(_ request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse {
        do {
            if let known = request.headers[Self.runHeader], known != run {
                throw Refusal("The studio was started again; load the page again.", .conflict)
            }
            return try await answer(request, body)
        } catch let refusal as Refusal {
            return .failure(refusal.status, refusal.sentence)
        } catch let error as ImageError {
            return .failure(.unprocessableContent, "\(error)")
        } catch let error as ImprintError {
            return .failure(.unprocessableContent, "\(error)")
        }
    }

    /// The most bytes that a picture may have.
    private static let photoLimit = 20 << 20

    /// What a request brought, if it is something and not too much.
    private func photo(_ body: Data?) throws -> Data {
        guard let body else {
            throw Refusal(
                "A picture may have at most \(Self.photoLimit >> 20) MB; choose a smaller one.", .payloadTooLarge)
        }
        guard !body.isEmpty else {
            throw Refusal("There is no picture in the request; send the bytes of an image file.")
        }
        return body
    }

    /// Why the page is not served any more, though the studio was not stopped; `nil` while it is.
    package var failure: LocalServerError? { server.failure }

    /// Ends a lesson that is under way, and stops.
    package func stop() async {
        await teacher.end()
        await server.stop()
    }

    private func answer(_ request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse {
        switch (request.method, request.path) {
        case (.GET, "/model"): return try .json(ModelAnswer(teacher, name: name))
        case (.POST, "/classify"): return try await classify(try photo(body))
        case (.GET, "/examples"): return try .json(ExamplesAnswer(teacher.examples, teacher))
        case (.POST, "/classes"):
            let label = try request.label
            return try .json(ExamplesAnswer(teacher.add(class: label), teacher))
        case (.POST, "/examples"):
            let (label, photo) = (try request.label, try self.photo(body))
            try await check(photo)
            return try collected { try $0.add(photo, to: label) }
        case (.DELETE, "/classes"):
            let label = try request.label
            return try collected { try $0.remove(label) }
        case (.GET, "/lesson"): return try await lesson(request)
        case (.POST, "/lesson"):
            try teacher.start()
            return try .json(teacher.lesson)
        case (.DELETE, "/lesson"):
            await teacher.stop()
            return try .json(teacher.lesson)
        case (.POST, "/revert"):
            try teacher.revert()
            return try .json(ModelAnswer(teacher, name: name))
        case (.GET, "/learned"): return try learned()
        case (.GET, let path):
            if let file = Page.file(path) { return file }
            fallthrough
        default: throw Refusal("There is nothing at \(request.path).", .notFound)
        }
    }
}
