# The studio in a container. From the folder of the repository:
#   docker build --tag podium-studio .
#   docker run --rm --read-only --tmpfs /tmp --publish 127.0.0.1:8765:8765 podium-studio
# Then open the address that it prints. The GitHub workflow builds and starts this image; .ci/run needs no Docker.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/podium-*.whl)[studio]" \
    && rm -r /wheels \
    && useradd --create-home studio
USER studio
WORKDIR /home/studio
EXPOSE 8765
# Inside the container it listens on every address; --publish above lets in the machine that runs it, and nobody else.
ENTRYPOINT ["podium", "studio", "--no-browser", "--host", "0.0.0.0", "--port", "8765"]
