internal import FlyingFox
package import Foundation
package import Imprint
package import ImprintBaseModels
internal import ImprintCore
internal import ImprintImages
package import ImprintLive
internal import ImprintModel
internal import ImprintNetwork
package import ImprintTraining
internal import Synchronization

/// A web page on this machine that classifies camera images with a model, and trains or personalizes the model.
///
/// The studio listens only on 127.0.0.1, unless `share(on:)` also lets other devices in. Only browsers that open `url` with its
/// token have access. It runs until `stop()` or until the object is released. The studio keeps camera images and examples in memory; see
/// docs/how-to/studio.md.
package final class Studio: Sendable {
    /// The default port; if it is in use, the studio takes the next free one.
    package static let defaultPort = 8094

    /// The address of the page, with the access token.
    package let url: URL
    private let server: LocalServer
    private let access: Access
    /// The access of other devices; nil unless the studio is shared.
    private let sharedAccess = Mutex<SharedAccess?>(nil)
    let trainer: ExampleTrainer
    /// The photos with boxes.
    let boxes: BoxStore
    /// The artwork of logos.
    let artwork: ArtworkStore
    /// The photos of the panel Photos.
    let photos: PhotoStore
    /// The configuration of new detectors.
    let detectorConfiguration: DetectorConfiguration
    /// The configuration of classifiers that the panel Photos trains.
    let photoConfiguration: ClassifierConfiguration
    /// The number of requests that wait for a new training status.
    let waitingRequests = Atomic(0)
    private let name: String?
    /// The identifier of this run in requests and responses, so that a page of an earlier studio at the same address
    /// detects the restart.
    private let run = UUID().uuidString

    /// Starts the studio.
    /// - Parameters:
    ///   - classifier: The initial model; if nil, the user trains a new one in the page.
    ///   - name: The name of the model in the page.
    ///   - port: The port, 1…65,535; if nil, the default port or the next free one.
    ///   - threads: The number of threads for training and for reading photos; nil for one per core.
    ///   - installer: The installer of the pretrained base models that new models start from.
    ///   - boxes: The folder of the photos with boxes; nil for the folder `studio` beside that of the base models.
    ///   - detectorConfiguration: The configuration of new detectors.
    ///   - photoConfiguration: The configuration of classifiers that the panel Photos trains.
    /// - Throws: `LocalServerError.noPort` if the port is not available.
    package init(
        _ classifier: ImageClassifier?, name: String? = nil, port: Int? = nil, threads: Int? = nil,
        installer: BaseModelInstaller = BaseModelInstaller(), boxes: URL? = nil,
        detectorConfiguration: DetectorConfiguration = DetectorConfiguration(),
        photoConfiguration: ClassifierConfiguration = ClassifierConfiguration()
    ) async throws {
        server = try await LocalServer(port: port, defaultPort: Self.defaultPort)
        access = Access(port: server.url.port ?? 80)
        let threads = threads ?? Processors.coreCount
        trainer = ExampleTrainer(classifier, threads: threads, installer: installer)
        PrivateFolder.removeStale(in: trainer.temporaryFolder)
        artwork = ArtworkStore(temporaryFolder: trainer.temporaryFolder)
        photos = PhotoStore(temporaryFolder: trainer.temporaryFolder)
        self.boxes = BoxStore(
            folder: boxes ?? installer.bases.folder.deletingLastPathComponent().appending(path: "studio"),
            threads: threads)
        self.detectorConfiguration = detectorConfiguration
        self.photoConfiguration = photoConfiguration
        self.name = name
        url = server.url.appending(queryItems: [URLQueryItem(name: "token", value: access.token)])
        await server.serve(
            bodyLimit: Self.photoLimit,
            authorize: { [access, weak self] request, device in
                guard let device else { return access.authorize(request) }
                guard let shared = self?.sharedAccess.withLock({ $0 }) else {
                    return .failure(.serviceUnavailable, "The studio is not shared.")
                }
                return shared.authorize(request, from: device)
            }
        ) { [weak self] request, body in
            guard let self else { return .failure(.serviceUnavailable, "The studio has ended.") }
            var response = try await responseOrFailure(request, body)
            response.headers[Self.runHeader] = run
            return response
        }
    }

    private static let runHeader = HTTPHeader("Imprint-Run")

    private func responseOrFailure(_ request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse {
        do {
            if let pageRun = request.headers[Self.runHeader], pageRun != run {
                throw RequestError("The studio was restarted. Reload the page.", .conflict)
            }
            return try await response(to: request, body)
        } catch let error as CancellationError {
            // The server responds to a request that takes too long.
            throw error
        } catch {
            return .failure(error)
        }
    }

    /// The maximum size of a photo in bytes.
    private static let photoLimit = 20 << 20

    /// Returns the photo in the body of a request, after checking that it is neither empty nor too large.
    func photo(_ body: Data?) throws -> Data {
        guard let body else {
            throw RequestError(
                "A photo may have at most \(Self.photoLimit >> 20) MB. Choose a smaller photo.", .payloadTooLarge)
        }
        guard !body.isEmpty else {
            throw RequestError("There is no photo in the request. Send the bytes of an image file.")
        }
        return body
    }

    /// Also serves the page to devices on the local network, through encrypted connections to an address of this machine.
    ///
    /// Each device needs an address of `SharedAccess.invite()`.
    /// - Throws: `ShareError` if OpenSSL is missing or the address is not available.
    package func share(on address: String) throws(ShareError) -> SharedAccess {
        let (page, fingerprint) = try server.share(on: address)
        let access = SharedAccess(page, fingerprint: fingerprint)
        sharedAccess.withLock { $0 = access }
        return access
    }

    /// The number of requests that wait for a new training status.
    package var waitingRequestCount: Int { waitingRequests.load(ordering: .relaxed) }

    /// The reason why the server ended unexpectedly; nil while it runs.
    package var failure: LocalServerError? { server.failure }

    /// Stops training, if it is running, and the studio.
    package func stop() async {
        await trainer.end()
        await server.stop()
        boxes.close()
        photos.close()
    }

    /// The properties of the model in use.
    var model: ModelResponse { ModelResponse(trainer, name: name) }

    private func response(to request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse {
        if let response = try await boxResponse(to: request, body) { return response }
        if let response = try await photoResponse(to: request, body) { return response }
        if let response = try await artworkResponse(to: request) { return response }
        if let response = try await exampleResponse(to: request, body) { return response }
        switch (request.method, request.path) {
        case (.GET, "/model"): return try .json(model)
        case (.POST, "/classify"): return try await classify(try photo(body))
        case (.GET, "/training"): return try await trainingStatus(request)
        case (.POST, "/training"):
            try trainer.start()
            return try .json(trainer.status)
        case (.DELETE, "/training"):
            if request.parameter("keep") == "best" { try trainer.keepBest() } else { await trainer.stop() }
            return try .json(trainer.status)
        case (.POST, "/base-model"):
            guard let base = request.parameter("name") else {
                throw RequestError("The request does not name a base model. Add ?name=….")
            }
            try trainer.install(base, acceptsLicense: request.parameter("license") == "accepted")
            return try .json(trainer.status)
        case (.POST, "/base-choice"):
            guard let base = request.parameter("base"), ["imprint", "installed"].contains(base) else {
                throw RequestError("The request has no base model. Add ?base=imprint or ?base=installed.")
            }
            try trainer.chooseBase(isBuiltIn: base == "imprint")
            return try .json(model)
        case (.POST, "/revert"):
            try trainer.revert()
            return try .json(model)
        case (.GET, "/learned"): return try await learnedModel()
        case (.GET, let path):
            if let file = Page.file(path) { return file }
            fallthrough
        default:
            throw RequestError(
                "There is nothing at \(request.path). Open the page of the studio, which has the path /.", .notFound)
        }
    }
}
