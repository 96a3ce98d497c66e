"""What image classification declares."""

from heedful.tasks.declaration import Demo, Evaluation, Option, TaskDeclaration, Training, Verb

HERE = "heedful.tasks.image_classification"

TRAINING = Training(
    "image-classifier",
    """Learn what images show.

    \b
    heedful train image-classifier --images photos/ --out my-vit --budget 30m
    heedful train image-classifier --idx-images train-images.gz --idx-labels train-labels.gz --out digits
    heedful train image-classifier --images photos/ --out larger --from my-vit --set 'model.image_size=[56,56]'
    """,
    f"{HERE}.job:ImageData",
    (
        Option(("--images",), "Images, with a sub-folder for each class.", "FOLDER"),
        Option(("--idx-images",), "Images as an idx file, the format of MNIST: plain or .gz."),
        Option(("--idx-labels",), "Their labels."),
        Option(("--valid-images",), "Held-out images; if not given, some of the images are held out.", "FOLDER"),
        Option(("--valid-idx-images",), "Held-out images as an idx file."),
        Option(("--valid-idx-labels",), "Their labels."),
        Option(
            ("--from", "start_from"),
            "A model to start from; its classes and image size may differ.",
            "MODEL",
        ),
    ),
    "heedful classify {} image.png",
)

EVALUATION = Evaluation(
    f"{HERE}.evaluation:evaluate",
    (
        Option(("--images",), "Images: a sub-folder for each class.", "FOLDER"),
        Option(("--idx-images",), "Images as an idx file, instead of a folder."),
        Option(("--idx-labels",), "Their labels."),
        Option(("--resolution",), "Use images at a different size from training: 40, or 40x56.", "PIXELS"),
    ),
)

TASKS = (
    TaskDeclaration(
        "image_classifier",
        "Image classification",
        f"{HERE}.pipeline:ImageClassifier",
        families=("vision",),
        takes="image",
        gives="label",
        verbs=(
            Verb("classify_images", "classifies images", f"{HERE}.verbs:CLASSIFY_IMAGES"),
            Verb("attention_of_images", "takes images", f"{HERE}.verbs:ATTENTION_OF_IMAGES"),
            Verb("explain_images", "takes images", f"{HERE}.verbs:EXPLAIN_IMAGES"),
        ),
        scores=("accuracy", "macro F1"),
        training=TRAINING,
        evaluation=EVALUATION,
        demo=Demo("vision", f"{HERE}.demo", "what does an image show? simple shapes, drawn on the spot", "60s"),
    ),
)
