// swift-tools-version: 6.2

import PackageDescription

let imprint = Target.Dependency.product(name: "Imprint", package: "imprint")

let package = Package(
    name: "imprint-examples",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "imprint", path: "../..")],
    targets: [
        .executableTarget(name: "IsItTheLogo", dependencies: [imprint]),
        .executableTarget(name: "PhotoLabels", dependencies: [imprint]),
        .executableTarget(name: "UploadFilter", dependencies: [imprint]),
        .executableTarget(name: "AltText", dependencies: [imprint]),
        .executableTarget(name: "ObjectCamera", dependencies: [imprint]),
        .executableTarget(name: "CustomTraining", dependencies: [imprint]),
        .executableTarget(name: "MyLabels", dependencies: [imprint]),
        .executableTarget(
            name: "TypedModel", dependencies: [imprint], resources: [.copy("TwoCircles.imprint")],
            plugins: [.plugin(name: "ImprintModels", package: "imprint")]),
    ],
    swiftLanguageModes: [.v6]
)
