internal import FlyingFox
internal import Foundation

/// The files of the page, which are embedded in the program.
enum Page {
    /// The content security policy: the page loads only resources of the studio.
    private static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        + "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

    /// Returns the response with the file at a path, or nil for an unknown path.
    static func file(_ path: String) -> HTTPResponse? {
        guard let (type, bytes) = files[path] else { return nil }
        return HTTPResponse(
            statusCode: .ok,
            headers: [
                .contentType: type, HTTPHeader("Content-Security-Policy"): policy,
                HTTPHeader("Permissions-Policy"): "camera=(self), microphone=(), geolocation=()",
            ], body: Data(bytes))
    }

    private static let script = "text/javascript; charset=utf-8"

    private static let files: [String: (type: String, bytes: [UInt8])] = [
        "/": ("text/html; charset=utf-8", PackageResources.index_html),
        "/studio.css": ("text/css; charset=utf-8", PackageResources.studio_css),
        "/history.css": ("text/css; charset=utf-8", PackageResources.history_css),
        "/flows.css": ("text/css; charset=utf-8", PackageResources.flows_css),
        "/icon.svg": ("image/svg+xml", PackageResources.icon_svg),
        "/studio.js": (script, PackageResources.studio_js),
        "/server.js": (script, PackageResources.server_js),
        "/camera.js": (script, PackageResources.camera_js),
        "/stage.js": (script, PackageResources.stage_js),
        "/source.js": (script, PackageResources.source_js),
        "/gauge.js": (script, PackageResources.gauge_js),
        "/steady.js": (script, PackageResources.steady_js),
        "/messages.js": (script, PackageResources.messages_js),
        "/results.js": (script, PackageResources.results_js),
        "/training.js": (script, PackageResources.training_js),
        "/cards.js": (script, PackageResources.cards_js),
        "/examples.js": (script, PackageResources.examples_js),
        "/files.js": (script, PackageResources.files_js),
        "/addition.js": (script, PackageResources.addition_js),
        "/archive.js": (script, PackageResources.archive_js),
        "/base.js": (script, PackageResources.base_js),
        "/curves.js": (script, PackageResources.curves_js),
        "/history.js": (script, PackageResources.history_js),
        "/shutter.js": (script, PackageResources.shutter_js),
        "/viewer.js": (script, PackageResources.viewer_js),
        "/boxes.js": (script, PackageResources.boxes_js),
        "/editor.js": (script, PackageResources.editor_js),
        "/detector.js": (script, PackageResources.detector_js),
        "/logo.js": (script, PackageResources.logo_js),
        "/photos.js": (script, PackageResources.photos_js),
        "/audit.js": (script, PackageResources.audit_js),
        "/trials.js": (script, PackageResources.trials_js),
        "/objects.js": (script, PackageResources.objects_js),
        "/overlay.js": (script, PackageResources.overlay_js),
        "/store.js": (script, PackageResources.store_js),
        "/zip.js": (script, PackageResources.zip_js),
        "/parts.js": (script, PackageResources.parts_js),
    ]
}
